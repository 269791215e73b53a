"""What a model's file says about the rows that it was trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from themis.config.drafts import ModelFacts
from themis.errors import MistakesError
from themis.inputs.columns import SHARED
from themis.inputs.guesses import plain
from themis.inputs.people import People, people_of
from themis.inputs.schema import Schema
from themis.inputs.tables import Table
from themis.results.notes import Note
from themis.subjects.base import Answers, Subject, at_door
from themis.subjects.loading import load_attribute
from themis.subjects.model_files import read_model
from themis.subjects.models import Model
from themis.subjects.trained import trained_of

PROBABILITIES = "the model's answers to some of the rows are all from 0 to 1, like probabilities"
ALONE = "the model answers with probabilities alone"
OTHERS = "the model's answers to some of the rows are not all from 0 to 1; they may be logits"


def facts_of_model(
    path: Path, *, folder: Path, file: str, module: str | None = None, trust_pickle: bool = False
) -> ModelFacts:
    """What a model knows about itself; nothing of an ONNX file, whose columns have no names.

    `module` is that of a file with weights, and is looked for in the folder of the themis.toml.
    """
    if path.suffix.lower() == ".onnx":
        return ModelFacts(file)
    thing = None if module is None else load_attribute(module, folder, where="--object")
    trained = trained_of(read_model(path, module=thing, trust_pickle=trust_pickle))
    assert trained is not None, "read_model gives only models"
    known = ("names", "needed", "count", "classes", "categories", "spelled", "target", "cut")
    told = {each: getattr(trained, each) for each in known}
    if trained.cut is not None and not trained.by_class:
        told |= {"cut_reason": ALONE, "class_": (trained.classes or (None,))[-1]}
    return ModelFacts(file, module=module, trained=trained, **told)


def tried(
    model: ModelFacts, rows: Table, schema: Schema, dates: Sequence[str], label: str | None
) -> ModelFacts:
    """The same, with what its answers to these rows show; nothing where it can't be tried.

    Its classes or a cut, the type of dates where it fails on them as texts, how it fails, and in
    which order it gets its columns.
    """
    if model.trained is None:
        return model
    model = _with_decisions(model, rows, schema)
    answered = _answered(model, rows, schema)
    if answered.failure and dates:
        typed = replace(model, dtypes=dict.fromkeys(dates, _date_type()))
        again = _answered(typed, rows, schema)
        answered = again if again.failed < answered.failed else answered
    return replace(answered, order=_order_of(answered, rows, schema, label))


def _order_of(model: ModelFacts, rows: Table, schema: Schema, label: str | None) -> Note | None:
    """In which order a model gets its columns, if it does not know their names."""
    try:
        people = people_of(rows, schema, label=label)
        subject = _subject(model, people, cut=model.wanted_cut, class_=model.class_)
        return order_note(at_door(subject, people.schema), people)
    except MistakesError:
        return None


def _subject(model: ModelFacts, people: People, **options: Any) -> Model:
    assert model.trained is not None
    return Model(model.trained.model, people.schema.given, **options)


def _run(model: ModelFacts, rows: Table, schema: Schema) -> tuple[Model, People, Answers]:
    """The model as a subject, rows as people, and its answers to them, of whatever kind."""
    people = people_of(rows, schema)
    subject = _subject(model, people, dtypes=model.dtypes, class_=model.class_)
    subject.structured = True
    return subject, people, at_door(subject, people.schema).load(people.codes).run()


def order_note(subject: Subject, people: People | None) -> Note | None:
    """The order in which a subject gets its columns, if nothing else tells them apart.

    With the known outcomes of people: how many of them it gets right, and the usual one would.
    """
    if not subject.traits.by_order:
        return None
    names = list(subject.schema.given.names)
    plainly = Note.of("by-order", names=names)
    known = None if people is None else people.known
    if people is None or known is None:
        return plainly
    try:
        answers = subject.load(people.codes).run()
    except MistakesError:  # it answers with numbers
        return plainly
    values = np.array([word_of(each) for each in known.values])
    outputs = np.array([word_of(plain(each)) for each in answers.outputs])
    totals = known.heads.sum(axis=0)
    if answers.failures or max(totals) < SHARED or not np.isin(outputs, values).all():
        return plainly
    return Note.of(
        "by-order",
        names=names,
        label=known.label,
        rows=int(totals.sum()),
        right=int(known.heads[values == outputs[:, np.newaxis]].sum()),
        usual=known.values[int(totals.argmax())],
        most=int(totals.max()),
    )


def word_of(value: Any) -> str:
    """A value whatever its type: 1, 1.0, true and "1" are the same."""
    text = str(value).strip().lower().removesuffix(".0")
    return {"true": "1", "false": "0"}.get(text, text)


def _with_decisions(model: ModelFacts, rows: Table, schema: Schema) -> ModelFacts:
    """The same, with its classes or a cut, of nets and the like, whose answers may be any numbers.

    Where running them fails, nothing more is known.
    """
    if model.trained is None or not model.trained.by_class or model.classes:
        return model
    try:
        subject, _, answers = _run(model, rows, schema)
    except MistakesError:
        return model
    if subject.trained.classes:
        return replace(model, classes=subject.trained.classes)
    if model.cut is None or answers.failures:
        return model
    numbers = np.asarray(answers.outputs, dtype=float)
    probable = bool(((numbers >= 0) & (numbers <= 1)).all())
    reason = PROBABILITIES if probable else OTHERS
    return replace(model, cut=0.5 if probable else 0.0, cut_reason=reason)


def _answered(model: ModelFacts, rows: Table, schema: Schema) -> ModelFacts:
    """The same, with the columns that its answers equal, or how it fails on some of the rows.

    That is told in words that several rows share.
    """
    try:
        _, people, answers = _run(model, rows, schema)
    except MistakesError as error:
        return replace(model, failed=len(rows), failure=f"the model can't be run: {error}")
    if not answers.failures:
        numbers = not model.classes and np.asarray(answers.outputs).dtype.kind == "f"
        echoed = _echoed(people, answers.outputs)
        return replace(model, echoed=echoed, answers_numbers=numbers)
    failures = list(answers.failures.values())
    lines = Counter(each.message.partition("\n")[0] for each in failures)
    (line, times), *_ = lines.most_common(1)
    told = line if times >= SHARED else failures[0].plain
    told = f"the model fails on {len(failures)} of {len(people)} rows that it was tried on: {told}"
    return replace(model, failed=len(failures), failure=told)


def _echoed(people: People, outputs: Any) -> tuple[str, ...]:
    """The columns whose values nearly always equal the answers, where these differ at all."""
    words = np.array([word_of(plain(each)) for each in np.asarray(outputs).tolist()])
    if len(words) < 20 or len({*words}) < 2:  # fewer rows prove nothing
        return ()
    columns = zip(people.schema, people.codes.T, strict=True)
    own = {each.name: map(word_of, each.decode(codes).tolist()) for each, codes in columns}
    return tuple(name for name, each in own.items() if np.mean(words == list(each)) >= 0.99)


def _date_type() -> str:
    """What pandas reads dates as."""
    import pandas as pd

    return str(pd.to_datetime(["2024-01-01"]).dtype)
