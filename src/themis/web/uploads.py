"""Files that somebody uploads to describe a subject, and the first draft that is made of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from themis.inputs.tables import KINDS, kind_of, read_table
from themis.show.html import Html, empty, tag, value
from themis.web.site import (
    Site,
    ask_command,
    button,
    check_change,
    choice,
    hidden,
    labelled,
    posted,
    problems,
    site_of,
    ticked,
    written,
)

SOURCES = (*KINDS, ".json", ".yaml", ".yml", ".xml")  # of a draft
PICKLES = (".joblib", ".pkl", ".pickle")
MODELS = (*PICKLES, ".onnx", ".skops", ".ubj", ".cbm", ".txt", ".pt", ".pth", ".keras")
ANY = (".toml", *SOURCES, *MODELS)
MOST_LINES = 2_000_000  # rows of a table
EMPTY = QueryParams()


def upload_field(site: Site, what: str, kinds: Iterable[str], source: str = "") -> Html:
    """Where a file is chosen, or dropped; of a draft, beside its source."""
    there = f"/describe/files?from={quote(source)}"
    field = empty("input", type="file", id="upload", accept=",".join(kinds), data_send=there)
    hint = f"It is copied to the folder {site.project.name}, and goes nowhere else."
    return tag("div", labelled("upload", what, field, hint), class_="drop")


async def take_file(request: Request) -> Response:
    """Keep a file in the project's folder; answers with the address where it is used."""
    site = site_of(request)
    check_change(request)
    name = cleaned(unquote(request.headers.get("x-themis-name", "")))
    suffix, is_new = Path(name).suffix.lower(), not site.file.exists()
    if suffix not in ANY:
        raise HTTPException(400, f"{name} is of no kind that can be used here.")
    if suffix == ".toml" and not is_new:
        raise HTTPException(409, f"{site.file.name} is there already; rename it first.")
    place = await _keep(request, site.file if suffix == ".toml" else site.project / name)
    source = place.name if suffix in SOURCES else request.query_params.get("from")
    there = "/describe"
    if source and is_new:
        there = f"/describe/draft?from={quote(source)}"
    elif suffix in KINDS:
        there = "/describe?section=profile#edit"
    elif suffix in MODELS:
        there = "/describe?section=subject&kind=model#edit"
    return Response(there, media_type="text/plain")


def cleaned(name: str) -> str:
    """A file's name without folders and without what shells and other systems mind."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    stem, dot, suffix = re.sub(r"[^\w.-]+", "_", last).strip("._-").rpartition(".")
    return f"{stem[:80] or 'file'}{dot}{suffix[:10]}"


async def _keep(request: Request, place: Path) -> Path:
    """Write what is sent beside what is there: `people.csv`, or else `people-2.csv`."""
    for number in range(1, 1_000):
        new = place if number == 1 else place.with_stem(f"{place.stem}-{number}")
        with suppress(FileExistsError), new.open("xb") as file:
            try:
                lines = 0
                async for piece in request.stream():
                    file.write(piece)
                    if (lines := lines + piece.count(b"\n")) > MOST_LINES:
                        raise HTTPException(413, f"At most {MOST_LINES:,} lines are taken.")
            except BaseException:
                new.unlink()
                raise
            return new
    raise HTTPException(409, f"There are too many files {place.name}.")


def _found(site: Site, suffixes: tuple[str, ...]) -> list[str]:
    """The files of these kinds in the project's folder."""
    files = (each.name for each in site.project.iterdir() if each.suffix.lower() in suffixes)
    return sorted(each for each in files if not each.startswith("."))


def beginnings(site: Site) -> Iterator[Html]:
    """What a first draft can be made of: a file that is uploaded, or one of the folder."""
    yield tag("p", "Begin with a file that you upload, or describe everything in the forms below.")
    yield upload_field(site, "A table of people, an API description, or a themis.toml", ANY)
    if names := _found(site, SOURCES):
        links = (tag("a", value(e), href=f"/describe/draft?from={quote(e)}") for e in names)
        yield tag("p", f"Or begin with a file of {site.project.name}:")
        yield tag("ul", *(tag("li", each) for each in links))


def ask_draft(request: Request) -> Response:
    """What must be known of a file to draft a themis.toml from it."""
    site = site_of(request)
    return _page(site, _asked(site, request.query_params.get("from", "")))


def _asked(site: Site, name: str) -> Path:
    if name not in _found(site, SOURCES):
        raise HTTPException(404, "There is no such file in the folder.")
    return site.project / name


def _page(
    site: Site,
    place: Path,
    mistakes: Sequence[str] = (),
    given: QueryParams = EMPTY,
) -> Response:
    fields = _of_table(site, place, given) if kind_of(place) else _of_description(given)
    source = hidden(**{"from": place.name})
    form = site.form("/describe/draft", source, *fields, button("Draft themis.toml"))
    intro = tag("p", "A first description is drafted from this file. You can change all of it.")
    what = "Upload the model that decides, if it is a file"
    model = upload_field(site, what, MODELS, place.name) if kind_of(place) else ""
    content, status = (problems(mistakes), intro, model, form), 400 if mistakes else 200
    title, scripts = f"Begin with {place.name}", ["send.js"]
    return site.page(title, *content, status=status, here="/describe", scripts=scripts)


def _of_table(site: Site, place: Path, given: QueryParams) -> Iterator[Html]:
    columns = list(read_table(place, most=1).columns)
    protected = given.getlist("protected")
    labels = (ticked("protected", e, value(e), is_chosen=e in protected) for e in columns)
    hint = tag("p", "None: they are guessed from the names.", class_="hint")
    chosen = tag("p", *labels, class_="boxes")
    yield tag("fieldset", tag("legend", "Protected columns"), hint, chosen)
    known = [("", "guess it"), *((each, each) for each in columns)]
    yield choice("target", "The column with what was decided", known, given.get("target", ""))
    if models := _found(site, MODELS):
        known = [("", "none of these"), *((each, each) for each in models)]
        yield choice("model", "The model that decides", known, given.get("model", ""))
        said = "I trust this model: loading it may run code on this machine"
        yield tag("p", ticked("trusted", "yes", said))


def _of_description(given: QueryParams) -> Iterator[Html]:
    protected, pointer = given.get("protected", ""), given.get("pointer", "")
    hint = "Names, with commas between; none: they are guessed where the file says enough."
    yield written("protected", "Protected characteristics", protected, hint)
    hint = "Where the file describes several, for example /components/schemas/Applicant"
    yield written("pointer", "The part that describes an input", pointer, hint)


async def draft(request: Request) -> Response:
    """Draft the file as `themis init` does, in a process of its own."""
    fields, site = await posted(request), site_of(request)
    given = {name: text for name, text in fields.items() if text}
    place, model = _asked(site, given.get("from", "")), given.get("model", "")
    if model and "trusted" not in given:
        mistakes = ["Loading a model may run code on this machine: confirm that you trust it."]
    elif model.lower().endswith(PICKLES) and not site.trust_pickle:
        mistakes = [f"{model} is a pickle: start the page with themis ui --trust-pickle for it."]
    else:
        source = "#".join(filter(None, (place.name, given.get("pointer"))))
        options = [f"--protected={each}" for each in fields.getlist("protected")]
        options += [f"--{name}={given[name]}" for name in ("target", "model") if name in given]
        command = "init", f"--from={source}", f"-o{site.file.name}", *options
        _, mistakes = await ask_command(site, *command)
        if not mistakes and site.file.exists():
            return RedirectResponse("/describe", 303)
    return _page(site, place, mistakes, fields)


ROUTES = [
    Route("/describe/files", take_file, methods=["POST"]),
    Route("/describe/draft", ask_draft),
    Route("/describe/draft", draft, methods=["POST"]),
]
