"""How long one waits for an answer: questions against the subject alone, as ratios of one run.

    python benchmarks/felt.py [--quick] [--only TEXT]

Each line of the first table is one question to a fresh `Audit`. Its CPU time, best of several,
stands beside that of the subject alone on the very inputs that the question executed, in one call
(a row function gets them as ready dictionaries in a bare loop). A question with the default
settings should take at most 4 times as long as the subject alone, or 30 ms more, and 14 calls where
calls are the cost; finer ones have ratios of their own. `--quick` repeats less often and leaves the
finest out; `--only` asks those whose line contains the text. To add questions, add `Question`s to
QUESTIONS.

The second table has searches for minimal sets beside a loop that a user would write: every set of
up to three characteristics on 1,200 inputs, in waves of 8, 32, 128, … variants with an early exit,
which lists what it observed to be above the threshold, without any guarantee. A search should take
no longer. Takes about seven minutes.

The third table is about a table of people with ids, dates, texts, decimals and missing values: CPU
seconds of what stands between the file and the model, with their targets for a million rows.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # CPU time of one thread is what is compared

import numpy as np
from speed import SCHEMA, SIZES, Recorder, in_one_go, seconds, tree, vectorised

import themis
from themis.audit.given import Described
from themis.config.from_rows import draft_from_data
from themis.config.reader import read_config
from themis.inputs.tables import read_table

TIMES, MORE_SECONDS, CALLS = 4.0, 0.030, 14  # of questions with the default settings
NUMBERS = ("age", "weight", "gain", "loss", "hours")


def four_lines(person: dict[str, Any]) -> bool:
    """A row function of four lines."""
    points = person["education"] * 2 + person["hours"] / 4
    if person["race"] == 0:
        points += 3
    return bool(points > 33)


def sample() -> tuple[Any, Any]:
    """Rows to learn from, and what is to be learned of them."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, size, 20_000) for size in SIZES.values()])
    points = rows[:, 0] * 3 + rows[:, 3] * 2 + rows[:, 11] - 4 * rows[:, 7]
    return rows, points + rng.normal(0, 5, len(rows)) > 60


def logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500).fit(*sample())


def forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50, max_depth=10, random_state=0).fit(*sample())


def boosted() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0).fit(*sample())


def xgboost() -> Any:
    model = importlib.import_module("xgboost").XGBClassifier(n_estimators=100, n_jobs=1)
    return model.fit(*sample())


def lightgbm() -> Any:
    model = importlib.import_module("lightgbm").LGBMClassifier(n_jobs=1, verbose=-1)
    return model.fit(*sample())


def pipeline() -> Any:
    """One-hot columns and scaled numbers into a logistic regression, fed with a DataFrame."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows, target = sample()
    kinds = [name for name in SIZES if name not in NUMBERS]
    parts = ColumnTransformer([("kinds", OneHotEncoder(), kinds), ("numbers", StandardScaler(),
                                                                   list(NUMBERS))])  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(SIZES))
    return make_pipeline(parts, LogisticRegression(max_iter=500)).fit(frame, target)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "numpy rule": lambda: themis.batch(vectorised),
    "decision tree": tree,
    "logistic regression": logistic,
    "random forest of 50": forest,
    "HistGradientBoosting": boosted,
    "XGBoost": xgboost,
    "LightGBM": lightgbm,
    "one-hot pipeline": pipeline,
    "row function": lambda: four_lines,
}


@dataclass(frozen=True)
class Question:
    """What a subject is asked, and how long that may take beside the subject alone."""

    subject: str
    name: str
    ask: Callable[[themis.Audit], Any]
    settings: dict[str, Any]
    ratio: float = TIMES
    more_seconds: float = MORE_SECONDS
    calls: float = CALLS

    @property
    def line(self) -> str:
        """The question in a few words."""
        return f"{self.subject}: {self.name}"

    @property
    def fine(self) -> bool:
        """Whether it takes long."""
        return "error" in self.settings

    def audit(self, subject: Any) -> themis.Audit:
        """A fresh audit for it."""
        return themis.Audit(subject, SCHEMA, seed=1, **self.settings)


def default_scores() -> Iterator[Question]:
    """Both scores of all subjects with the default settings."""
    for subject in SUBJECTS:
        calls = float("inf") if subject == "row function" else CALLS
        for measure in ("causal", "group"):
            yield Question(subject, f"{measure} race", score(measure), {}, calls=calls)


def fine_scores() -> Iterator[Question]:
    """Scores with smaller errors, for which most of the time is the subject's."""
    exact: dict[str, Any] = {"more_seconds": 0.0, "calls": float("inf")}
    ratios = {"causal": 1.3, "group": 1.5}
    for subject in ("numpy rule", "decision tree", "logistic regression"):
        for measure, ratio in ratios.items():
            name, settings = f"{measure} race ± 0.002", {"error": 0.002}
            yield Question(subject, name, score(measure), settings, ratio, **exact)
    for measure in ratios:
        name, settings = f"{measure} race ± 0.02", {"error": 0.02}
        yield Question("one-hot pipeline", name, score(measure), settings, 1.5, **exact)


def score(measure: str) -> Callable[[themis.Audit], Any]:
    """The question for a score of race."""
    return lambda audit: getattr(audit, measure)("race")


QUESTIONS = [*default_scores(), *fine_scores()]


def alone(subject: Any, codes: Any) -> Callable[[], Any]:
    """The subject on the same rows, prepared before the clock starts."""
    if not hasattr(subject, "feature_names_in_"):
        return in_one_go(subject, codes)
    import pandas as pd

    frame = pd.DataFrame(np.ascontiguousarray(codes, dtype=np.int64), columns=list(SIZES))
    return lambda: subject.predict(frame)


def answer(question: Question, repeats: int) -> str:
    """The line of a table for one question."""
    try:
        subject = SUBJECTS[question.subject]()
    except ImportError as error:
        return f"| {question.subject} | {question.name} | not measured: {error} | | | | | | |"
    recorded = question.audit(subject)
    recorder = Recorder(recorded)
    question.ask(recorded)
    calls, codes = recorded.runner.account.calls, np.concatenate(recorder.codes)
    del recorder
    mine, bare = seconds(
        lambda: question.ask(question.audit(subject)), alone(subject, codes), repeats=repeats
    )
    ratio, more = mine / bare, mine - bare
    quick = ratio <= question.ratio or more <= question.more_seconds
    met = "met" if quick and calls <= question.calls else "MISSED"
    return (
        f"| {question.subject} | {question.name} | {calls:,} | {len(codes):,} | {1e3 * bare:.1f} | "
        f"{1e3 * mine:.1f} | {ratio:.2f} | {question.ratio:g} | {met} |"
    )


# Searches ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Searched:
    """A search for sets of some characteristics above a threshold."""

    subject: str
    among: tuple[str, ...]
    size: int
    threshold: float

    @property
    def line(self) -> str:
        """The search in a few words."""
        return f"{self.subject}: search {self.threshold:g}, {len(self.among)} characteristics"


FIVE = ("age", "workclass", "marital", "relation", "race")
EIGHT = (*FIVE, "education", "occupation", "sex")
TWELVE = tuple(name for name in SIZES if name != "weight")
SEARCHES = [
    Searched("numpy rule", TWELVE, 2, 0.5),
    Searched("decision tree", EIGHT, 3, 0.1),
    Searched("decision tree", EIGHT, 3, 0.75),
    Searched("logistic regression", FIVE, 3, 0.2),
    Searched("logistic regression", EIGHT, 3, 0.5),
    Searched("random forest of 50", FIVE, 3, 0.2),
    Searched("one-hot pipeline", FIVE, 3, 0.2),
    Searched("one-hot pipeline", EIGHT, 3, 0.3),
]
LOOP_ROWS = 1_200


def plain_loop(predict: Callable[[Any], Any], search: Searched) -> int:
    """How many sets a loop without guarantees finds."""
    rng = np.random.default_rng(1)
    base = np.column_stack([rng.integers(0, size, LOOP_ROWS) for size in SIZES.values()])
    own, found = predict(base), list[tuple[str, ...]]()
    for size in range(1, search.size + 1):
        for names in combinations(search.among, size):
            if any(set(part) <= set(names) for part in found):
                continue
            columns = [list(SIZES).index(name) for name in names]
            variants = rng.permutation(list(product(*(range(SIZES[name]) for name in names))))
            left, start, wave = np.arange(LOOP_ROWS), 0, 8
            while start < len(variants) and len(left):
                tried = variants[start : start + wave]
                inputs = np.repeat(base[left], len(tried), axis=0)
                inputs[:, columns] = np.tile(tried, (len(left), 1))
                differs = predict(inputs).reshape(len(left), -1) != own[left, None]
                left, start, wave = left[~differs.any(axis=1)], start + wave, 4 * wave
            if 1 - len(left) / LOOP_ROWS > search.threshold:
                found.append(names)
    return len(found)


def compare(search: Searched, repeats: int) -> str:
    """The line of a table for one search."""
    subject = SUBJECTS[search.subject]()

    def ask() -> tuple[themis.SearchResult, int]:
        audit = themis.Audit(subject, SCHEMA, seed=1)
        found = audit.search(search.threshold, among=search.among, max_size=search.size)
        return found, audit.runner.account.calls

    result, calls = ask()
    loop = partial(plain_loop, lambda codes: alone(subject, codes)(), search)
    mine, plain = seconds(ask, loop, repeats=repeats)
    met = "met" if mine <= plain else "MISSED"
    return (
        f"| {search.line} | {result.sets_tested} of {result.sets_total} | {len(result.found)} | "
        f"{result.executions:,} | {calls:,} | {mine:.2f} | {plain:.2f} | {met} |"
    )


# A large table -------------------------------------------------------------------------------
PEOPLE = 1_000_000
PEOPLE_SECONDS = {"init": 10.0, "profile": 15.0}


def write_people(path: Path, count: int) -> None:
    """Applicants as files have them: decimals between all steps, and columns that are no input."""
    rng = np.random.default_rng(0)
    salary = np.round(rng.lognormal(10.6, 0.4, count), 2)
    columns = [
        [f"A{number:08d}" for number in range(count)],
        rng.choice(["female", "male", "diverse"], count, p=[0.46, 0.52, 0.02]).tolist(),
        rng.integers(18, 66, count).tolist(),
        [
            "" if rare else str(each)
            for each, rare in zip(salary, rng.random(count) < 0.04, strict=True)
        ],
        np.round(rng.gamma(2, 900, count), 2).tolist(),
        [f"20{day % 24:02d}-0{day % 9 + 1}-11" for day in range(count)],
        [" ".join(each) for each in rng.choice(["good", "late", "team", "lead"], (count, 9))],
        rng.choice(["yes", "no"], count).tolist(),
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("id,gender,age,salary,bonus,applied,notes,hired\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def people_lines(count: int) -> Iterator[str]:
    """How long `init` takes with a table, and a profile with the file that it wrote."""
    with TemporaryDirectory() as folder:
        rows, file = Path(folder, "people.csv"), Path(folder, "themis.toml")
        write_people(rows, count)
        start = process_time()
        draft = draft_from_data(read_table(rows), source="", target="hired", profile="people.csv")
        file.write_text(draft.text(), "utf-8")
        spent = {"init": process_time() - start}
        start, config = process_time(), read_config(file)
        people = Described(config).people()
        assert people is not None
        np.stack([each.column(people.codes[:, c]) != "" for c, each in enumerate(people.schema)])
        spent["profile"] = process_time() - start
    for name, taken in spent.items():
        target = PEOPLE_SECONDS[name] * count / PEOPLE
        met = "met" if taken <= target else "MISSED"
        yield f"| {name} of {count:,} rows | {taken:.1f} | {target:g} | {met} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer repeats, and no small errors")
    parser.add_argument("--only", default="", help="only questions whose line contains this")
    parser.add_argument("--line", type=int, help="only this one, in this process")
    parser.add_argument("--search", type=int, help="only this search, in this process")
    options = parser.parse_args()
    if options.line is not None:
        print(answer(QUESTIONS[options.line], 3 if options.quick else 9))
        return
    if options.search is not None:
        print(compare(SEARCHES[options.search], 1 if options.quick else 3))
        return
    print("| subject | asked | calls | executions | alone ms | with Themis ms | ratio | target | |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for place, question in enumerate(QUESTIONS):  # each in a process that no other has used
        if options.only in question.line and not (options.quick and question.fine):
            quick = ["--quick"] if options.quick else []
            subprocess.run([sys.executable, __file__, "--line", str(place), *quick], check=True)
    print("\n| search | sets tested | found | executions | calls | s | loop s | |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for place, search in enumerate(SEARCHES):
        if options.only in search.line:
            quick = ["--quick"] if options.quick else []
            subprocess.run([sys.executable, __file__, "--search", str(place), *quick], check=True)

    print("\n| table | s | target | |\n|---|---|---|---|", flush=True)
    for line in people_lines(PEOPLE // 10 if options.quick else PEOPLE):
        print(line, flush=True)


if __name__ == "__main__":
    main()
