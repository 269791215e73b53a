"""Which audit does a test mean? The audits of a session, made once for all tests that name them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from themis.audit.audit import Audit
from themis.config.reader import find_config
from themis.errors import ConfigError, Mistake, RequestError, suggest
from themis.settings import Settings
from themis.testing.claims import AuditInTest, Record, Unsure

KEPT = 16  # audits; an older one is closed, and made again when a test names it
OF_MEASUREMENT = tuple(each.name for each in fields(Settings) if each.name != "seed")
OF_SUBJECT = (
    "seed", "favourable", "outputs", "max_failures", "cache", "profile", "profile_weights",
)  # fmt: skip
OF_FILE = (*OF_SUBJECT, "jobs", "trust_pickle")


@dataclass(frozen=True)
class Found:
    """An audit that tests share, and the settings of the test that asked for it."""

    audit: Audit
    settings: Mapping[str, Any]

    def for_test(self, record: Record, unsure: Unsure) -> AuditInTest:
        """The audit as one test sees it."""
        return AuditInTest(self.audit, self.settings, record=record, unsure=unsure)


class Audits:
    """The audits of a session. Settings given on the command line override all others."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        self._audits: OrderedDict[Any, tuple[Audit, Any]] = OrderedDict()

    def audit(self, asked: Mapping[str, Any], test: Path, root: Path) -> Found:
        """The audit that a test asks for: of a subject and its schema, or of a file."""
        asked = {**asked, **self._given}
        _refuse_mistakes(asked)
        settings = {name: asked[name] for name in OF_MEASUREMENT if name in asked}
        if "subject" in asked:
            options = _chosen(asked, OF_SUBJECT)
            subject, schema = asked["subject"], asked["schema"]
            key: tuple[Any, ...] = (id(subject), id(schema), *_key(options))
            found = self._kept(key, lambda: Audit(subject, schema, **options), asked)
        else:
            options = _chosen(asked, OF_FILE)
            path = _file(asked.get("config"), test, root)
            key = (path, *_key(options))
            found = self._kept(key, lambda: Audit.from_file(path, **options), asked)
        found.settings.changed(**settings)  # mistakes are the fixture's, not the first assertion's
        return Found(found, settings)

    def close(self) -> None:
        """End the processes of all subjects."""
        while self._audits:
            self._audits.popitem()[1][0].close()

    def _kept(self, key: Any, make: Callable[[], Audit], alive: Any) -> Audit:
        """The audit of this key; `alive` is held, so that no other object gets its identity."""
        if key not in self._audits:
            self._audits[key] = make(), alive
            if len(self._audits) > KEPT:
                self._audits.popitem(last=False)[1][0].close()
        self._audits.move_to_end(key)
        return self._audits[key][0]


def _refuse_mistakes(asked: Mapping[str, Any]) -> None:
    mistakes = list(_find_mistakes(asked))
    if mistakes:
        raise RequestError(mistakes)


def _find_mistakes(asked: Mapping[str, Any]) -> Iterator[Mistake]:
    known = ("config", "subject", "schema", *OF_MEASUREMENT, *OF_FILE)
    for name in asked:
        if name not in known:
            yield Mistake("unknown-setting", name, "there is no such setting", suggest(name, known))
    if ("subject" in asked) != ("schema" in asked):
        here, missing = ("subject", "schema") if "subject" in asked else ("schema", "subject")
        problem = f"there is a {here}, but no {missing}"
        yield Mistake("mark", "mark themis", problem, f"name both, or a file: {missing}=…")
    if "subject" in asked and asked.get("config") is not None:
        problem = "there are both a subject and a file"
        yield Mistake("mark", "mark themis", problem, "name one of them")


def _chosen(asked: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: asked[name] for name in names if name in asked}


def _key(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What tells options apart: plain values by what they are, others by which object it is."""
    for name, value in sorted(options.items()):
        parts = value if isinstance(value, list | tuple) else [value]
        plain = all(isinstance(each, str | int | float | Path | None) for each in parts)
        yield name, repr(value) if plain else id(value)


def _file(named: Any, test: Path, root: Path) -> Path:
    """The file that is named, seen from the test's folder; else the nearest one above it."""
    if named is not None:
        path = (test.parent / named).resolve()
        return find_config(path) if path.is_dir() else path
    for folder in test.resolve().parents:
        try:
            return find_config(folder)
        except ConfigError:
            if folder == root:
                break
    remedy = "write one: themis init; or mark the test: @pytest.mark.themis(subject=…, schema=…)"
    problem = "there is no themis.toml at or above the test"
    raise ConfigError([Mistake("no-config", "themis_audit", problem, remedy, str(test))])
