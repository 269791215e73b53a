"""XML elements: a small tree with line numbers, from documents that can do no harm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from themis.errors import ConfigError, Mistake

SIZE_LIMIT = 2**20  # bytes of a document
DEPTH_LIMIT = 100


@dataclass
class Element:
    """An element, its own text without the space around, and its children."""

    name: str
    line: int = 0
    path: str = ""  # the names from the outermost element to this one
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next((each for each in self.children if each.name == name), None)

    def children_named(self, name: str) -> list[Element]:
        """All children of this name."""
        return [each for each in self.children if each.name == name]

    def path_to(self, name: str) -> Element:
        """The first child of this name, or an empty element."""
        return self.child(name) or Element(name)

    def source(self) -> str:
        """The element as it might have been written."""
        attributes = "".join(f' {name}="{value}"' for name, value in self.attributes.items())
        inner = self.text + "".join(each.source() for each in self.children)
        return f"<{self.name}{attributes}>{inner}</{self.name}>"


def parse_xml(data: bytes, *, source: str) -> Element:
    """The outermost element; raises ConfigError for what is not XML, or not harmless.

    A document type is refused as soon as it begins: without one there are no entities to expand
    and no files to fetch.
    """
    try:
        if len(data) > SIZE_LIMIT:
            raise _Refused(1, f"has {len(data):,} bytes", f"at most {SIZE_LIMIT:,} are read")
        return _Builder().build(data)
    except _Refused as refused:
        mistake = Mistake("xml", "", refused.problem, refused.remedy)
        raise ConfigError([mistake.at(file=source, line=refused.line)]) from None
    except expat.ExpatError as error:
        problem = f"is not XML: {expat.ErrorString(error.code)}"
        mistake = Mistake("xml", "", problem, "mend it at this place")
        raise ConfigError([mistake.at(file=source, line=error.lineno)]) from None


class _Refused(Exception):  # noqa: N818 - not an error of the program
    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.remedy = line, problem, remedy


class _Builder:
    """Builds the tree while expat reads."""

    def __init__(self) -> None:
        self._root: Element | None = None
        self._open: list[Element] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse_doctype

    def build(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise _Refused(1, f"can't be decoded: {error}", "save it as UTF-8") from None
        assert self._root is not None
        return self._root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if len(self._open) >= DEPTH_LIMIT:
            raise _Refused(line, f"has more than {DEPTH_LIMIT} elements in one another", "")
        path = f"{self._open[-1].path}.{name}" if self._open else name
        element = Element(name, line, path, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        element.text = element.text.strip()

    def _add_text(self, text: str) -> None:
        self._open[-1].text += text

    def _refuse_doctype(self, *_: Any) -> None:
        line = self._parser.CurrentLineNumber
        problem = "has a document type (<!DOCTYPE …>), which may define entities"
        raise _Refused(line, problem, "remove it: settings need none")
