"""Drafts from a JSON Schema or an OpenAPI description: its finite properties, as they stand.

Enumerations, truth values and bounded numbers are taken as they stand. What has no finite list of
values is left out, with the reason. Of OpenAPI the web service becomes the subject: what the
description does not say is a guess with a remark, or a commented line with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from themis.config.drafts import Draft, DraftFile, check_names, check_some_used
from themis.config.from_rows import NAMES_A_DECISION, wanted
from themis.config.toml import spell_remark, spell_value
from themis.errors import Mistake, RequestError, count_of
from themis.inputs.characteristics import Value
from themis.inputs.guesses import words_of
from themis.inputs.numbers import align, exact, is_number, round_step

NULL_SHARE = 0.05  # of the inputs, where a schema allows null: it does not say how often it is


class _UnsupportedError(Exception):
    """A property that has no finite list of values; the message is the reason."""


def draft_from_json_schema(
    document: Any, *, source: str, pointer: str = "", protected: Sequence[str] = ()
) -> DraftFile:
    """A file whose characteristics are the properties of an object.

    `pointer` says which object of the document is meant, as in `#/components/schemas/Applicant`.
    """
    reader = _Reader(document, source)
    try:
        pointer, found = reader.find(pointer)
        properties, required = reader.object(found)
    except (_UnsupportedError, RecursionError) as error:
        problem = str(error) if isinstance(error, _UnsupportedError) else "leads in a circle"
        remedy = "name an object that is described in the file itself"
        raise RequestError([Mistake("source", source, problem, remedy)]) from None
    check_names(list(properties), protected)
    drafts = [
        reader.draft(name, spec, required=name in required, protected=name in protected)
        for name, spec in properties.items()
    ]
    problem, remedy = "no property has a finite list of values", "add enum, or minimum and maximum"
    check_some_used(drafts, source, problem, remedy)
    origin = f"{source}{pointer}: {count_of(len(drafts), 'property', 'properties')}"
    file = DraftFile(origin, drafts, protected)
    for operation in operations_of(document):
        if operation.pointer == pointer:
            service = _Service(operation, document, reader.resolved)
            return service.given_to(file, properties, required)
    return file


class _Reader:
    """One document, in which references lead from here to there."""

    def __init__(self, document: Any, source: str) -> None:
        self._document = document
        self._source = source

    def find(self, pointer: str) -> tuple[str, Any]:
        """The object that describes an input: the one pointed at, or the only one there is."""
        if pointer:
            try:
                return pointer, self._follow(pointer)
            except _UnsupportedError as error:
                raise self._mistake(f"{pointer}: {error}", "check the part behind #") from None
        if not isinstance(self._document, Mapping):
            raise self._mistake("is no description of an object", "name a JSON Schema")
        if "openapi" not in self._document and "swagger" not in self._document:
            return "", self._document
        found = {e.pointer: self.resolved(e.body) for e in operations_of(self._document)}
        if len(found) == 1:
            return next(iter(found.items()))
        if not found:
            raise self._mistake("describes no object", "name one: --from FILE#/components/…")
        listed = ", ".join(list(found)[:8])
        problem = f"describes {len(found)} objects: {listed}"
        raise self._mistake(problem, f"choose one, e.g. --from '{self._source}{next(iter(found))}'")

    def object(self, spec: Any) -> tuple[dict[str, Any], set[str]]:
        """The properties of an object and the names of those that it must have."""
        spec = self.resolved(spec)
        if not isinstance(spec, Mapping):
            raise self._mistake("is no description of an object", "name a JSON Schema")
        properties = dict(items(spec.get("properties")))
        required = spec.get("required", [])
        names = {str(name) for name in required} if isinstance(required, list) else set()
        for part in spec.get("allOf", []) if isinstance(spec.get("allOf"), list) else []:
            more, needed = self.object(part)
            properties = more | properties
            names |= needed
        if not properties:
            raise self._mistake("describes no properties", "name an object with properties")
        return properties, names

    def draft(self, name: str, spec: Any, *, required: bool, protected: bool) -> Draft:
        """The characteristic that a property is, or why it is none."""
        remarks: list[str] = []
        try:
            resolved = self.resolved(spec)
            if not isinstance(resolved, Mapping):
                raise _UnsupportedError("nothing is said about its values")
            real, null = self._without_null(resolved)
            value = _characteristic(real, remarks)
            if null:
                value["missing"] = NULL_SHARE
                remarks.append(
                    f"null in {NULL_SHARE:.0%} of the inputs, a guess: write how often it is"
                )
        except _UnsupportedError as error:
            return Draft(name, None, tuple(remarks), str(error))
        except RecursionError:
            return Draft(name, None, tuple(remarks), "its references lead in a circle")
        description = resolved.get("description")
        if isinstance(description, str) and description.strip():
            remarks.insert(0, " ".join(description.split())[:80])
        if not required:
            remarks.append("may be missing; here it never is")
        if protected:
            value["protected"] = True
        plain = list(value) == ["values"]
        return Draft(name, value["values"] if plain else value, tuple(remarks)).checked()

    def _without_null(self, spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """The same without null, alternatives of single values as one; and whether it was there."""
        null = spec.get("nullable") is True
        for key in ("anyOf", "oneOf"):
            if isinstance(spec.get(key), list):
                parts = [self.resolved(part) for part in spec[key]]
                real = [
                    p for p in parts if not (isinstance(p, Mapping) and p.get("type") == "null")
                ]
                null = null or len(real) < len(parts)
                spec = _one_of(real)
        kinds = spec.get("type")
        if isinstance(kinds, list):
            real_kinds = [kind for kind in kinds if kind != "null"]
            null = null or len(real_kinds) < len(kinds)
            if len(real_kinds) != 1:
                raise _UnsupportedError(f"it has several types: {', '.join(map(str, kinds))}")
            spec = {**spec, "type": real_kinds[0]}
        listed = spec.get("enum")
        return spec, null or (isinstance(listed, list) and None in listed)

    def resolved(self, spec: Any) -> Any:
        """What a reference leads to, with what stands beside it."""
        for _ in range(20):  # references that lead to references
            if isinstance(spec, Mapping) and len(spec.get("allOf", ())) == 1 and "type" not in spec:
                rest = {key: value for key, value in spec.items() if key != "allOf"}
                spec = {**self.resolved(spec["allOf"][0]), **rest}
            if not isinstance(spec, Mapping) or "$ref" not in spec:
                return spec
            beside = {key: value for key, value in spec.items() if key != "$ref"}
            target = self._follow(str(spec["$ref"]))
            if not isinstance(target, Mapping):
                return target
            spec = {**target, **beside}
        raise _UnsupportedError("its references lead nowhere")

    def _follow(self, pointer: str) -> Any:
        if not pointer.startswith("#"):
            raise _UnsupportedError(f"it is described elsewhere: {pointer}")
        place = self._document
        for part in pointer[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and key.isdecimal() and int(key) < len(place):
                place = place[int(key)]
            elif isinstance(place, Mapping) and key in place:
                place = place[key]
            else:
                raise _UnsupportedError(f"there is no {pointer}")
        return place

    def _mistake(self, problem: str, remedy: str) -> RequestError:
        return RequestError([Mistake("source", self._source, problem, remedy)])


def _characteristic(spec: Mapping[str, Any], remarks: list[str]) -> dict[str, Any]:
    """The property as [inputs] describes one."""
    kind, values = spec.get("type"), spec.get("enum")
    if "const" in spec or (isinstance(values, list) and len(values) == 1):
        raise _UnsupportedError("it has one value only")
    if isinstance(values, list):
        real = [value for value in values if value is not None]
        if not all(isinstance(value, str | bool | int | float) for value in real):
            raise _UnsupportedError("some of its values are lists or objects")
        return {"values": real}
    if kind == "boolean":
        return {"values": [False, True]}
    if kind in ("integer", "number"):
        return _range(spec, remarks, whole=kind == "integer")
    if kind == "string":
        raise _UnsupportedError("any text is possible; list the texts that matter")
    raise _UnsupportedError(
        f"its type is {kind!r}, not a single value" if kind else "its type is not said"
    )


def _one_of(parts: list[Any]) -> Mapping[str, Any]:
    """Alternatives as one: the only one, or the values of them all."""
    if len(parts) == 1 and isinstance(parts[0], Mapping):
        return parts[0]
    values: list[Any] = []
    for part in parts:
        if isinstance(part, Mapping) and "const" in part:
            values.append(part["const"])
        elif isinstance(part, Mapping) and isinstance(part.get("enum"), list):
            values += part["enum"]
        else:
            raise _UnsupportedError("it is one of several things")
    return {"enum": values}


def _range(spec: Mapping[str, Any], remarks: list[str], *, whole: bool) -> dict[str, Any]:
    """The numbers between two bounds that are multiples of what the schema says."""
    multiple = spec.get("multipleOf")
    low, low_excluded = _bound(spec, "minimum", "exclusiveMinimum")
    high, high_excluded = _bound(spec, "maximum", "exclusiveMaximum")
    if low is None or high is None:
        lacking = "minimum" if low is None else "maximum"
        raise _UnsupportedError(f"it has no {lacking}; write {{ min = …, max = … }}")
    step = exact(multiple) if is_number(multiple) else None
    if step is not None and step <= 0:
        raise _UnsupportedError(f"multipleOf is {multiple}")
    if step is None and not whole:
        if high <= low:
            raise _UnsupportedError(f"minimum {float(low):g}, maximum {float(high):g}")
        step = round_step(high - low)
        remarks.append("any number between; the step is chosen here")
        first, last = align(low, high, step)
    else:
        step = step or Fraction(1)
        if whole:  # whole multiples of a fraction: of its numerator
            step = Fraction(step.numerator)
        first, last = -(-low // step) * step, high // step * step
    first += step if low_excluded and first == low else 0
    last -= step if high_excluded and last == high else 0
    plain = int if whole else float
    result = {"min": plain(first), "max": plain(last)}
    if not whole or step != 1:
        result["step"] = plain(step)
    return result


def _bound(spec: Mapping[str, Any], name: str, exclusive: str) -> tuple[Fraction | None, bool]:
    """A bound, and whether it is itself excluded; older schemas say so by a truth value."""
    given, strict = spec.get(name), spec.get(exclusive)
    bound = exact(given) if is_number(given) else None
    if not is_number(strict):
        return bound, strict is True
    limit = exact(strict)
    looser = bound is not None and (bound > limit if name == "minimum" else bound < limit)
    return (bound, False) if looser else (limit, True)


# The web service ------------------------------------------------------------------------------
LOCAL = "http://localhost:8000"  # where services run that are being written
METHODS = ("post", "put", "patch")
CODES = ("200", "201", "202", "2XX", "default")
KINDS = ("boolean", "enum", "string", "integer", "number")  # the likeliest decision first
FILLERS = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}


@dataclass(frozen=True)
class Operation:
    """One way to call a service, and where the description of its body stands."""

    path: str
    method: str
    spec: Mapping[str, Any]
    body: Any
    pointer: str


def operations_of(document: Mapping[str, Any]) -> Iterator[Operation]:
    """All that take a JSON body."""
    for path, around in items(document.get("paths")):
        for method in METHODS:
            spec = inside(around, method)
            place = (method, "requestBody", "content", "application/json", "schema")
            body = inside(around, *place)
            if isinstance(body, Mapping):
                where = str(body.get("$ref") or pointer_to("paths", path, *place))
                yield Operation(path, method.upper(), spec, body, where)


@dataclass(frozen=True)
class _Service:
    """The service of an operation; `resolved` leads from references to their ends."""

    operation: Operation
    document: Mapping[str, Any]
    resolved: Callable[[Any], Any]

    def given_to(
        self, file: DraftFile, properties: Mapping[str, Any], required: set[str]
    ) -> DraftFile:
        """The file with this service as its subject."""
        answer = list(_answer(self.operation, self.resolved))
        favourable, remark = _favourable(answer[0] if answer else None)
        lines = (
            "\n# The software under test. It needs: pip install 'themis-fairness[http]'",
            '[subject]\nkind = "http"',
            *self._address(),
            f"method = {spell_value(self.operation.method)}",
            *self._headers(),
            *self._body(file.drafts, properties, required),
            *_pointer_lines(answer),
        )
        return replace(file, favourable=favourable, favourable_remark=remark, subject=lines)

    def _address(self) -> Iterator[str]:
        servers = self.operation.spec.get("servers") or self.document.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else {}
        server = str(inside(first, "url") or "")
        if "://" not in server:
            yield from spell_remark("url: the description names no server: this one is a guess")
            server = f"{LOCAL}{server}"
        url = server.rstrip("/") + self.operation.path
        if "{" in url:
            yield from spell_remark("url: write what stands in braces")
        yield f"url = {spell_value(url)}"

    def _headers(self) -> Iterator[str]:
        """A place for what the service wants to know of whoever calls it."""
        if self.operation.spec.get("security", self.document.get("security")):
            told = "headers: the service asks who calls; $TOKEN is of the environment"
            yield from spell_remark(told)
            yield '# headers = { Authorization = "Bearer ${TOKEN}" }'

    def _body(
        self, drafts: Sequence[Draft], properties: Mapping[str, Any], required: set[str]
    ) -> Iterator[str]:
        """The whole input, or a template where the service needs more than the characteristics."""
        lacking = [each.name for each in drafts if each.left_out and each.name in required]
        if not lacking:
            yield 'body = "{input}"'
            return
        names = ", ".join(lacking)
        yield from spell_remark(f"body: the service needs {names} as well: write what it expects")
        constants = {name: _filler(self.resolved(properties[name])) for name in lacking}
        places = {each.name: f"{{{each.name}}}" for each in drafts if not each.left_out}
        yield f"body = {spell_value(places | constants)}"


def _filler(spec: Any) -> Any:
    """A value that a description allows, as far as that is easily told."""
    spec = spec if isinstance(spec, Mapping) else {}
    names = ("default", "example", "const", "minimum")
    told = [*map(spec.get, names), *(spec.get("enum") or ()), *(spec.get("examples") or ())]
    text = "x" * max(int(spec.get("minLength") or 1), 1)
    anything = FILLERS.get(str(spec.get("type")), text)
    value = next((each for each in told if each is not None), anything)
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


# What it answers --------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Field:
    """A value in an answer that may be the decision."""

    pointer: str
    name: str
    kind: str  # one of KINDS
    values: tuple[Any, ...] = ()

    @property
    def rank(self) -> tuple[bool, int]:
        """The likeliest decision is the smallest."""
        return words_of(self.name).isdisjoint(NAMES_A_DECISION), KINDS.index(self.kind)


def _answer(operation: Operation, resolved: Any) -> Iterator[_Field]:
    """The values of an answer, the likeliest decision first."""
    responses = operation.spec.get("responses")
    for code in CODES:
        spec = inside(resolved(inside(responses, code)), "content", "application/json", "schema")
        if isinstance(spec, Mapping):
            yield from sorted(_fields(spec, resolved, "", ""), key=lambda each: each.rank)
            return


def _fields(spec: Any, resolved: Any, pointer: str, name: str, depth: int = 0) -> Iterator[_Field]:
    spec = resolved(spec)
    # The decision is looked for in three objects within each other.
    if not isinstance(spec, Mapping) or depth > 3:
        return
    for key, inner in items(spec.get("properties")):
        escaped = key.replace("~", "~0").replace("/", "~1")
        yield from _fields(inner, resolved, f"{pointer}/{escaped}", key, depth + 1)
    values = spec.get("enum")
    kind = "enum" if isinstance(values, list) else spec.get("type")
    if kind in KINDS:
        yield _Field(pointer or "text", name, str(kind), tuple(values or ()))


def _pointer_lines(fields: Sequence[_Field]) -> Iterator[str]:
    if not fields:
        yield from spell_remark("answer: the description does not say what the service answers")
        yield '# answer = "/decision"'
        return
    first, *others = fields
    if others:
        rest = ", ".join(each.pointer for each in others[:5])
        yield from spell_remark(f"answer: a guess; the answer also has {rest}")
    yield f"answer = {spell_value(first.pointer)}"


def _favourable(field: _Field | None) -> tuple[Sequence[Value] | None, str]:
    unknown = "name the answers that count as the favourable decision"
    if field is None or field.kind == "string":
        return None, unknown
    if field.kind == "boolean":
        return [True], "guessed: the answer is true or false"
    if field.kind == "enum":
        return wanted([(value, 0) for value in field.values], "the description")
    return None, "a number: [outputs] can say from which value on it is favourable"


# Descriptions -----------------------------------------------------------------------------------
def items(thing: Any) -> list[tuple[str, Any]]:
    """The members of an object; nothing of anything else."""
    return [(str(key), value) for key, value in thing.items()] if isinstance(thing, Mapping) else []


def inside(thing: Any, *keys: str) -> Any:
    """What these keys lead to; None where one of them is not there."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    return thing


def pointer_to(*parts: str) -> str:
    """The JSON pointer of these keys."""
    return "#/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)
