"""How is a value, a key or a remark written in TOML?"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 100


def spell_key(name: str) -> str:
    """A key, in quotes where TOML wants them."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else spell_value(name)


def spell_value(value: Any) -> str:
    """A value; TOML writes strings, lists, truth values and numbers as JSON does."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{spell_key(key)} = {spell_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spell_remark(text: str) -> Iterator[str]:
    """The lines of a comment, without what TOML does not allow in one."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    for line in textwrap.wrap(shown, WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
