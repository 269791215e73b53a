"""Tables of a file as models: what their keys are, and how dataclasses are read from tables."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import partial
from types import NoneType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from themis.errors import Mistake, RequestError, SchemaError
from themis.inputs.characteristics import Value, Values
from themis.keys import Rule, remedy_of

VALUE = {"type": ["string", "number", "boolean"]}


def broken(mistake: Mistake) -> PydanticCustomError:
    """The exception of a validator that knows in plain words what is wrong."""
    said = {"code": mistake.code, "problem": mistake.problem, "remedy": mistake.remedy}
    return PydanticCustomError("broken_rule", "{problem}", said)


def _obey(rule: Rule, remedy: str, value: Any) -> Any:
    if not rule.holds(value):
        said = {"rule": rule.words, "remedy": remedy_of(remedy, value)}
        raise PydanticCustomError("broken_rule", "{rule}", said)
    return value


def _check_decision(output: Any) -> Any:
    try:
        Values([output])
    except SchemaError as error:
        raise broken(error.mistakes[0]) from None
    return output


Decision: TypeAlias = Annotated[Any, AfterValidator(_check_decision), WithJsonSchema(VALUE)]
Decisions: TypeAlias = Annotated[tuple[Decision, ...], Field(strict=False)]  # a list is one, too


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def keys(cls) -> dict[str, FieldInfo]:
        """All keys that it may have, as they are written."""
        return {each.alias or name: each for name, each in cls.model_fields.items()}

    @classmethod
    def inner(cls, key: str) -> type[Table] | None:
        """The table that stands at a key, if one does."""
        known = cls.keys().get(key)
        kind = None if known is None else known.annotation
        return kind if isinstance(kind, type) and issubclass(kind, Table) else None

    def given(self) -> dict[str, Any]:
        """The keys that stand in the file."""
        keys = type(self).model_fields
        return {key: getattr(self, key) for key in keys if key in self.model_fields_set}


def _drop_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def required(description: str, *examples: Any, **rules: Any) -> Any:
    return Field(description=description, examples=list(examples) or None, **rules)


def optional(description: str, *examples: Any, default: Any = None, **rules: Any) -> Any:
    """A key that may be left out; without a default it has none for editors to show."""
    if default is None or default == "":
        rules["json_schema_extra"] = _drop_default
    if "default_factory" not in rules:
        rules["default"] = default
    return Field(description=description, examples=list(examples), **rules)


def table_of(cls: type, name: str, meaning: str) -> type[Table]:
    """The table whose keys are the described fields of a dataclass."""
    hints = get_type_hints(cls)
    keys: dict[str, Any] = {
        each.name: _key(hints[each.name], each.default, **each.metadata)
        for each in fields(cls)
        if "description" in each.metadata
    }
    return create_model(name, __base__=Table, __doc__=meaning, **keys)


def _key(
    hint: Any, default: Any, *, rule: Rule | None = None, remedy: str = "", **rest: Any
) -> tuple[Any, Any]:
    """A field of a dataclass as one of a model: what may be None is left out in a file."""
    hint = rest.pop("annotation", hint)
    known = [kind for kind in get_args(hint) if kind is not NoneType]
    if NoneType in get_args(hint) and len(known) == 1:
        (hint,) = known
    if rule is not None:
        check = AfterValidator(partial(_obey, rule, remedy))
        hint = Annotated[Any, check, WithJsonSchema(dict(rule.schema))]
    elif get_origin(hint) is tuple:
        hint = Decisions if hint == tuple[Value, ...] else Annotated[hint, Field(strict=False)]
    if default is MISSING:
        return hint, Field(**rest)
    description, examples = rest.pop("description"), rest.pop("examples")
    return hint, optional(description, *examples, default=default, **rest)


def read_from(table: type[Table]) -> GetPydanticSchema:
    """Marks a dataclass that is made of what stands in a table."""

    def schema(cls: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        made = partial(_made, cls)
        return core_schema.no_info_after_validator_function(made, handler.generate_schema(table))

    return GetPydanticSchema(schema)


def _made(cls: type, table: Table) -> Any:
    try:
        return cls(**table.given())
    except RequestError as error:
        raise ValidationError.from_exception_data(
            cls.__name__,
            [{"type": broken(each), "loc": (), "input": None} for each in error.mistakes],
        ) from None
