"""The web service that an OpenAPI description is of, as a subject: address, method, body, answer.

What the description does not say is a guess with a remark, or a commented line with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from themis.config.drafts import Draft, DraftFile
from themis.config.from_rows import NAMES_A_DECISION, wanted
from themis.config.toml import spell_remark, spell_value
from themis.inputs.characteristics import Value
from themis.inputs.personal import words_of

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


def with_service(
    file: DraftFile,
    document: Mapping[str, Any],
    operation: Operation,
    resolved: Any,
    properties: Mapping[str, Any],
    required: set[str],
) -> DraftFile:
    """The file with the service of an operation; `resolved` leads from references to their ends."""
    answer = list(_answer(operation, resolved))
    favourable, remark = _favourable(answer[0] if answer else None)
    lines = (
        "\n# The software under test. It needs: pip install 'themis-fairness[http]'",
        '[subject]\nkind = "http"',
        *_address(document, operation),
        f"method = {spell_value(operation.method)}",
        *_headers(document, operation),
        *_body(file.drafts, properties, required, resolved),
        *_pointer_lines(answer),
    )
    return replace(file, favourable=favourable, favourable_remark=remark, subject=lines)


# Where it is ------------------------------------------------------------------------------------
def _address(document: Mapping[str, Any], operation: Operation) -> Iterator[str]:
    servers = operation.spec.get("servers") or document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else {}
    server = str(inside(first, "url") or "")
    if "://" not in server:
        yield from spell_remark("url: the description names no server: this one is a guess")
        server = f"{LOCAL}{server}"
    url = server.rstrip("/") + operation.path
    if "{" in url:
        yield from spell_remark("url: write what stands in braces")
    yield f"url = {spell_value(url)}"


def _headers(document: Mapping[str, Any], operation: Operation) -> Iterator[str]:
    """A place for what the service wants to know of whoever calls it."""
    if operation.spec.get("security", document.get("security")):
        yield from spell_remark("headers: the service asks who calls; $TOKEN is of the environment")
        yield '# headers = { Authorization = "Bearer ${TOKEN}" }'


# What it is sent --------------------------------------------------------------------------------
def _body(
    drafts: Sequence[Draft], properties: Mapping[str, Any], required: set[str], resolved: Any
) -> Iterator[str]:
    """The whole input, or a template where the service needs more than the characteristics."""
    lacking = [each.name for each in drafts if each.left_out and each.name in required]
    if not lacking:
        yield 'body = "{input}"'
        return
    names = ", ".join(lacking)
    yield from spell_remark(f"body: the service needs {names} as well: write what it expects")
    constants = {name: _filler(resolved(properties[name])) for name in lacking}
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
