"""A golden corpus: what Themis says of many small runs in all formats, to guard a refactoring.

python -m tests.golden DIR [--json JSON-DIR]   run all cases: DIR/CASE.FORMAT.txt, and results
python -m tests.golden DIR --from JSON-DIR     only render results that were saved before
python -m tests.golden --compare A B           what differs, by format; --lines N of each are shown
With --only TEXT: cases that have it in their names.

Cases are real runs of the command line within this process; only `samples` and `terminals` use
names that are not public. Results are rendered after their times were made the same.
"""

from __future__ import annotations

import argparse
import gc
import io
import itertools
import json
import os
import random
import re
import runpy
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from difflib import unified_diff
from pathlib import Path
from typing import Any

import themis

PROGRAM = '''\
"""Unfair to women of one race; at the execution STOP somebody presses Ctrl-C."""
import random
from collections import Counter
STOP, RUNS = {stop}, Counter()
def _good(p, more=0):
    RUNS["all"] += 1
    if RUNS["all"] == STOP:
        raise KeyboardInterrupt
    more += 10 * ("<script>alert(1)</script>" in p.values())
    return p["income"] >= (60 if p["race"] == "purple" and p["sex"] == "f" else 30) + more
def decision(p):
    return "approved" if _good(p) else "refused"
def changed(p):  # a later version: fair to them, unfair to the old
    return "approved" if _good({{**p, "sex": "m"}}, 30 * (p["age"] == 60)) else "refused"
def noisy(p):  # by the input and how often it was run, so that the order does not matter
    RUNS[key := repr(sorted(p.items()))] += 1
    chance = random.Random(f"{{key}} {{RUNS[key]}}").random()
    return "approved" if _good(p) ^ (chance < 0.1) else "refused"
def failing(p):
    if p["age"] == 60 and p["race"] == "purple" and p["income"] == 0:
        raise ValueError("no such age")
    return decision(p)
def spelled(p):
    word = decision({{**p, "sex": "m"}})
    return word.title() + "." if p["race"] == "purple" else word
def labelled(p):
    return f"{{decision(p)}} for {{p['age']}}"
def same(p):
    return "no" if _good(p) else "no"
def several(p):
    offers = ["Ibis", "Mercure", "Ritz"][::-1 if p["race"] == "green" and p["income"] > 60 else 1]
    limit = 40 * p["income"] + (500 if p["race"] == "green" else 0)
    return {{"granted": decision(p), "limit": limit, "offers": offers}}
'''
OUTPUTS = """
[outputs]
granted = { at = "/granted", favourable = ["approved"] }
limit = { at = "/limit", min = 0, max = 5000, cut = 2000, distance = "relational" }
offers = { at = "/offers", distance = "ranking" }
"""
CHECKS = """checks = [
{ against = ["race"], max_score = 0.01 }, { against = ["sex"], measure = "group", max_score = 0.9 },
{ against = ["race", "sex"], max_score = 0.2 }, { search = true, max_score = 0.22 }]
accepted = [{ against = ["race"], reason = "ticket 4711", until = 2099-12-31 },
{ against = ["age"], measure = "group", reason = "not needed", until = 2020-12-31 }]
"""
REPORT = """
[report]
name = "Loan screen"
people = "applicants"
decision = "approval"
values = { sex = { f = "women", m = "men" } }
"""
LINKED = """
[inputs.role]
values = ["wife", "husband"]
follows = "sex"
as = { f = { husband = "wife" }, m = { wife = "husband" } }
[constraints]
young = "age >= 30 or income <= 60"
apart = "race == 'green' or city == 'north'"
"""
NASTY = r"""
[inputs."\"><img src=x onerror='alert(2)'>"]
values = ["<script>alert(1)</script>", "مرحبا", "日本", "a\nb\u001b[31m|*_", "\u202erl\u202c"]
protected = true
"""
AXES: dict[str, tuple[str, ...]] = {  # the first of each is usual; those of PAIRS also go in twos
    "method": ("sampled", "exact", "swept", "paper"),
    "ending": ("done", "budget", "interrupted"),
    "people": ("uniform", "weighted", "profile", "profile-weighted"),
    "answers": (
        *("decision", "noisy", "several", "failing"),
        *("spelled", "labelled", "same", "changed"),
    ),
    "measure": ("both", "causal", "group"),
    "rows": ("withheld", "shown"),
    "inputs": ("plain", "linked", "nasty"),
    "run": ("usual", "family", "words", "repeats", "capped", "unprobed", "vouched"),
}  # fmt: skip
PAIRS = ("method", "ending", "people", "answers")
APPARENT = "apparent --data people.csv --against race --against race,sex"
COMMANDS = {
    "score": "score --against race --against race,sex",
    "search": "search --threshold 0.1 --among race,sex,age,city",
    "check": "check",
    "audit": "audit",
    "apparent": f"{APPARENT} --label repaid --label-favourable yes --proxies",
    "search-decided": "search --threshold 0.1 --measure both --decide-only",
    "search-tie": "search --threshold 0.3 --measure both",
    "search-high": "search --threshold 0.6",
    "apparent-within": f"{APPARENT} --counterfactuals within --only-data",
    "apparent-weights": f"{APPARENT} --weights count --unknown drop",
    "apparent-drawn": f"{APPARENT} --draw --only-data",
    "apparent-fine": f"{APPARENT} --against age,city --only-data --rows",
}
DIFFS = (
    "score score+changed, score+changed score, score score+noisy, score score+budget, "
    "score score+linked, score score+paper, score score+several, search search+changed, "
    "search search+exact, search-decided search, audit+changed audit, check check+changed, "
    "apparent apparent+changed, apparent apparent-weights, score search, score score, "
    "score+profile score+profile+changed"
)
OTHERS = (
    "demo --no-progress, validate, schema, schema --result, init -o new.toml, "
    "init --from people.csv -o new.toml, score --against rase, report none.json, scor, --help"
)
FORMATS = {
    "html": ".html", "md": ".md", "junit": ".junit.xml", "sarif": ".sarif", "github": "",
    "csv": ".csv", "annex": ".annex.html",
}  # fmt: skip


def cases() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, command and unusual choices: one at a time, and pairs of them for scores."""
    single = [{axis: each} for axis, choices in AXES.items() for each in choices[1:]]
    pairs = [a | b for a, b in itertools.combinations(single, 2)
             if {*a, *b} <= {*PAIRS} and len(a | b) == 2
             and not {"labelled", "same"} & {*b.values()}
             and ("changed" not in b.values() or "profile" in a.values())]  # fmt: skip
    hidden = [{"people": "profile", "rows": "shown"}, {"people": "profile", "inputs": "linked"}]
    for command in COMMANDS:
        plain = {"method": "exact"} if command == "search-tie" else {}
        yield command, command, plain
        for chosen in (*single, *(pairs + hidden if command == "score" else ())):
            few = {"capped", "unprobed", "vouched", "repeats", "causal", "group", "shown"}
            if command == "score" or ("-" not in command and not few & {*chosen.values()}):
                yield "+".join((command, *chosen.values())), command, chosen


def write_project(choices: dict[str, str]) -> None:
    """A program, its people and its `themis.toml` in this folder."""
    chosen = {axis: choices.get(axis, usual[0]) for axis, usual in AXES.items()}.values()
    method, ending, people, answers, _, _, inputs, run = chosen
    Path("program.py").write_text(PROGRAM.format(stop=90 if ending == "interrupted" else -1))
    weights = ", weights = [0.8, 0.2]" * (people == "weighted")
    largest = 9 if method == "swept" else 19
    parts = {
        CHECKS: True,
        f"[subject]\nkind = 'python'\nfunction = 'program:{answers}'": True,
        "favourable = ['approved']": answers != "several",
        "max_failures = 0.5": answers == "failing",
        "labels = { approved = ['approved*'], refused = ['refused*'] }": answers == "labelled",
        "repeats = 3": run == "repeats",
        "deterministic = true": run == "vouched",
        "[run]\nseed = 7\nconfidence = 0.95\nerror = 0.1": True,
        "stopping = 'paper'": method == "paper",
        "exact = true": method == "swept",
        "max_executions = 60": ending == "budget",
        "family = true": run == "family",
        "max_assignments = 2": run == "capped",
        "probe = 0": run == "unprobed",
        f"[inputs]\nrace = {{ values = ['green', 'purple'], protected = true{weights} }}": True,
        "sex = { values = ['f', 'm'], protected = true }": True,
        "age = { min = 20, max = 60, step = 20, bins = [30, 50] }": True,
        f"city = {{ values = ['north', 'south']{weights} }}": inputs != "linked",
        "city = { values = ['north', 'south'], missing = 0.1 }": inputs == "linked",
        "income = { min = 0, max = 90, step = 10 }": True,
        f"savings = {{ min = 0, max = {largest} }}": method != "exact",
        LINKED: inputs == "linked",
        NASTY: inputs == "nasty",
        "[profile]\ndata = 'people.csv'": people.startswith("profile"),
        "weights = 'count'": people == "profile-weighted",
        OUTPUTS: answers == "several",
        REPORT: run == "words",
    }  # fmt: skip
    lines = ["version = 1", *(part for part, wanted in parts.items() if wanted)]
    Path("themis.toml").write_text("\n".join(lines))
    chance, lines = random.Random(3), ["id,race,sex,age,city,income,savings,role,repaid,count"]
    for number in range(120):
        sex, north = chance.choice("ffm"), chance.random() < 0.7
        race = "purple" if chance.random() < 0.3 + 0.3 * north else "green"
        age = 60 if number % 40 == 0 else chance.choice([20, 40])  # three of them: too few to show
        row = (number, "blue" if number == 50 else race, sex, age,
               "" if number % 20 == 3 else "north" if north else "south",
               chance.randrange(0, 100, 10), chance.randrange(10),
               "wife" if sex == "f" else "husband", chance.choice(["yes", "yes", "no"]),
               1 + number % 3)  # fmt: skip
        lines.append(",".join(map(str, row)))
    Path("people.csv").write_text("\n".join(lines) + "\n")


def stream(terminal: bool = False) -> io.TextIOWrapper:
    """What is printed goes here; it may pass for a terminal."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    file.isatty = lambda: terminal  # type: ignore[method-assign]
    return file


def command(asked: str, width: int = 80, *, terminal: bool = False) -> str:
    """What `python -m themis` prints, and its exit code, within this process."""
    out, err, code = stream(terminal), stream(terminal), None
    before, interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    sys.argv, os.environ["COLUMNS"] = ["themis", *asked.split()], str(width)
    sys.modules.pop("program", None)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            runpy.run_module("themis", run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
        signal.signal(signal.SIGINT, interrupt)
        gc.enable()
    if code in (130, 143) and "STOP, RUNS = -1" in Path("program.py").read_text():
        raise KeyboardInterrupt  # of this program itself, which a command would take for its own
    texts = [each.buffer.getvalue().decode() for each in (out, err)]  # type: ignore[attr-defined]
    return f"$ themis {asked}\n{texts[0]}--- stderr\n{texts[1]}--- {code}\n"


UNITS = r"(?:ms|µs|s|seconds?|min(?:utes?)?)(?![\w%])"
CHANGING = (
    (rf"(?:(?:<|under|about)[\u00a0 ])?\b\d[\d,.]*[\u00a0 ]{UNITS}", "TIME"),
    (r"\s+·\s+TIME(?:\s+·\s+)?", " · TIME · "),  # its length decided where a line ends
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+\d:]*", "DATE"),
    (r"\b(?:[0-9a-f]{16}|[0-9a-f]{64})\b|sha256-[\w+/=]{44}", "FINGERPRINT"),
    (rf"\b{re.escape(themis.__version__)}\b", "VERSION"),
    (r'("(?:seconds|python|numpy|scipy)": )"?[\d.]+"?', r"\1VARIES"),
)
TIMING = {"started": "2026-03-01T12:00:00+00:00", "seconds": 1.5, "versions": {"themis": "0"}}
BLOCK = re.compile(r"(?=<(?:p|h\d|tr|li|section|div|table|details|svg|text)\b)")


class Corpus:
    """Where texts and results go, and how many texts there are by format."""

    def __init__(self, folder: Path, results: Path, only: str) -> None:
        self.folder, self.results, self.only = folder, results, only
        self.formats = Counter[str]()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        results.mkdir(parents=True, exist_ok=True)

    def add(self, case: str, kind: str, text: str) -> None:
        """Keep a text, but nothing that differs from run to run; blocks of pages begin a line."""
        text = text.replace(str(Path.cwd()), "FOLDER")
        for pattern, word in CHANGING:
            text = re.sub(pattern, word, text)
        self.formats[kind] += 1
        place = self.folder / f"{case}.{kind}.txt".replace(" ", "_")
        text = BLOCK.sub("\n", text) if "html" in kind or kind == "annex" else text
        place.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")

    def keep(self, case: str, data: dict[str, Any]) -> None:
        """Keep a result as if it had been measured at another time."""
        data["timing"] |= {name: each for name, each in TIMING.items() if name in data["timing"]}
        (self.results / f"{case}.json").write_text(json.dumps(data, indent=1))

    @contextmanager
    def project(self, case: str, choices: dict[str, str]) -> Iterator[bool]:
        """Within, a new project is here; false where the case is not wanted."""
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            write_project(choices)
            yield self.only in case

    def show(self, case: str, asked: str, report: str | None = None) -> None:
        """All that a command can print; where there is a `report`, also as JSON and documents."""
        kinds = {"cli-40": ("", 40), "cli-100-verbose": ("-v", 100), "cli-quiet": ("-q", 100)}
        if report is not None:
            kinds |= {"cli-80": ("", 80), "cli-json": ("--json", 80)}
        for kind, (option, width) in kinds.items():
            self.add(case, kind, command(f"{asked} {option}", width, terminal=option == "-q"))
        for kind in (report or "").split():
            Path(f"r.{kind}").unlink(missing_ok=True)
            command(f"{asked} -q --report r.{kind}")
            if Path(f"r.{kind}").exists():
                self.add(case, kind, Path(f"r.{kind}").read_text())


def run_cases(corpus: Corpus) -> None:
    """Run every case and keep its result; what is usual in more widths."""
    for name, kind, choices in cases():
        with corpus.project(name, choices) as wanted:
            if not wanted:
                continue
            measure = choices.get("measure", "both")
            asked = COMMANDS[kind] + f" --measure {measure}" * (kind in ("score", "search"))
            asked += " --no-progress" + " --rows" * ("rows" in choices)
            place = Path("themis-audit/result.json" if kind == "audit" else "result.json")
            text = command(asked + f" -o {place}" * (kind != "audit"))
            corpus.add(name, "cli-80", text)
            if place.exists():
                corpus.keep(name, json.loads(place.read_text()))
            if not choices or (kind == "score" and len(choices) == 1):
                corpus.show(name, asked)


def samples(corpus: Corpus) -> None:
    """Keep the results that tests construct."""
    from tests.report_results import SAMPLES

    for name in (each for each in SAMPLES if corpus.only in f"sample {each}"):
        data = json.loads(json.dumps(SAMPLES[name]().to_dict()))
        if isinstance(asked := (data.get("source") or {}).get("command"), list):
            data["source"]["command"] = " ".join(asked)  # as a file has it
        own, used = (
            data["schema"]["inputs"],
            itertools.chain(*(e["against"] for e in data["scores"])),
        )
        data["schema"]["inputs"] = own | {each: ["a", "b"] for each in used if each not in own}
        corpus.keep(f"sample {name}", data)
        try:
            themis.read_result(corpus.results / f"sample {name}.json")
        except themis.ThemisError:  # no file has such names: see the inputs "nasty" for those
            (corpus.results / f"sample {name}.json").unlink()
            corpus.add(f"sample {name}", "notebook-html", "\n\n".join(notebook(SAMPLES[name]())))
            for kind, text in terminals(SAMPLES[name](), None):
                corpus.add(f"sample {name}", kind, text)


def run_stories(corpus: Corpus) -> None:
    """Commands on what others left: replays, differences, a baseline; and those that run little."""
    for name in ("decision", "noisy", "several", "failing", "profile"):
        usual = {"people" if name == "profile" else "answers": name}
        with corpus.project(f"replay {name}", usual) as wanted:
            if wanted:
                command(f"{COMMANDS['score']} --rows --suite suite.csv -o before.json")
                corpus.show(f"replay {name} again", "replay suite.csv", "html md")
                write_project(usual | {"answers": "changed"})
                corpus.show(f"replay {name} later", "replay suite.csv", "html md")
                corpus.show(f"replay {name} result", "replay before.json", "")
    for before, after in (each.split() for each in DIFFS.split(", ")):
        with corpus.project(f"diff {before} {after}", {"answers": "changed"}) as wanted:
            if not wanted or not (corpus.results / f"{before}.json").exists():
                continue
            for place, name in (("before.json", before), ("after.json", after)):
                shutil.copy(corpus.results / f"{name}.json", place)
            corpus.show(f"diff {before} {after}", "diff before.json after.json", "html md")
            asked = "diff before.json after.json --tolerance 0.2"
            corpus.add(f"diff {before} {after}", "cli-tolerance", command(asked))
            if before == "check":
                asked = "check --no-progress --baseline before.json -o new.json"
                corpus.add("check baseline", "cli-80", command(asked))
                corpus.keep("check baseline", json.loads(Path("new.json").read_text()))
    for asked in OTHERS.split(", "):
        with corpus.project(f"other {asked}", {}) as wanted:
            if wanted:
                corpus.add(f"other {asked}", "cli-80", command(asked))
                if Path("new.toml").exists():
                    corpus.add(f"other {asked}", "toml", Path("new.toml").read_text())


def render(corpus: Corpus) -> None:
    """Every saved result in every format; of pairs of choices only one terminal."""
    for place in sorted(corpus.results.glob("*.json")):
        name, data = place.stem, json.loads(place.read_text())
        with corpus.project(name, {}) as wanted:
            if not wanted:
                continue
            shutil.copy(place, "r.json")
            asked = f"report r.json --format {','.join(FORMATS)}"
            corpus.add(name, "github", command(asked))
            for kind, suffix in FORMATS.items():
                if suffix:
                    corpus.add(name, kind, Path(f"r{suffix}").read_text(encoding="utf-8"))
            if data.get("personal_data"):
                command(f"{asked} --rows")
                for kind in ("html", "md", "annex"):
                    corpus.add(name, f"{kind}-rows", Path(f"r{FORMATS[kind]}").read_text())
            result = themis.read_result("r.json")
        corpus.add(name, "json", json.dumps(data, indent=1))
        corpus.add(name, "read-back", f"{result.to_dict() == data}\n")
        corpus.add(name, "notebook-html", "\n\n".join(notebook(result)))
        for kind, text in terminals(result, 80 if name.count("+") > 1 else None):
            corpus.add(name, kind, text)


def notebook(result: themis.Result) -> Iterator[str]:
    """What a notebook shows of a result and its parts."""
    for thing in (result, *result.searches, *result.scores[:12]):
        shows = (type(thing)._repr_html_, repr, str, lambda it: str(it.plot()),
                 lambda it: it.to_frame("pandas").to_csv() if it is result else "")  # fmt: skip
        for show in shows:
            try:
                yield show(thing)[:100_000]
            except (themis.ThemisError, UnicodeError) as error:
                yield f"error: {error}"
    for score in result.scores[:12]:
        parts = (*getattr(score, "witnesses", ())[:1], *getattr(score, "groups", ())[:1])
        yield from (each._repr_html_() for each in parts)


def terminals(result: themis.Result, only: int | None) -> Iterator[tuple[str, str]]:
    """A saved result on terminals of several widths, without colour: no command shows that."""
    from themis.results.withheld import withheld
    from themis.show.terminal import checks, results, searches

    page = searches.render_search if result.searches else results.render_result
    page = results.render_result if result.command == "apparent" else page
    page = results.render_result if result.command == "audit" else page
    page = checks.render_checks if result.checks else page
    for width in (40, 80, 100) if only is None else (only,):
        yield f"terminal-{width}", page(withheld(result), file=stream(), width=width)
    if only is None:
        text = page(withheld(result), file=stream(terminal=True), width=80, everything=True)
        yield "terminal-80-verbose", text


def compare(before: Path, after: Path, shown: int) -> bool:
    """Print by format what differs; whether anything does."""
    files, differing, lines = Counter[str](), Counter[str](), Counter[str]()
    examples: dict[str, list[str]] = {}
    for name in sorted({each.name for folder in (before, after) for each in folder.iterdir()}):
        kind = name.removesuffix(".txt").rpartition(".")[2]
        files[kind] += 1
        texts = ["", ""]
        for place, folder in enumerate((before, after)):
            with suppress(FileNotFoundError):
                texts[place] = (folder / name).read_text(encoding="utf-8")
        if texts[0] != texts[1]:
            old, new = (each.splitlines() for each in texts)
            found = list(unified_diff(old, new, n=0, lineterm=""))[2:]
            changed = [each[:160] for each in found if not each.startswith("@@")]
            differing[kind] += 1
            lines[kind] += len(changed)
            examples.setdefault(kind, []).extend((f"{name}:", *changed[:4]))
    for kind, number in sorted(files.items()):
        print(f"{kind:22}{number:6} files{differing[kind]:6} differ{lines[kind]:8} lines")
        for each in examples.get(kind, [])[:shown]:
            print(f"    {each}")
    return bool(differing)


def main() -> int:
    """Write a corpus, or compare two."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    for option in ("--json", "--from"):
        parser.add_argument(option, type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--compare", nargs=2, type=Path)
    parser.add_argument("--lines", type=int, default=10)
    given = vars(parser.parse_args())
    if given["compare"]:
        before, after = given["compare"]
        return int(compare(before, after, given["lines"]))
    os.environ |= {"NO_COLOR": "1", "TERM": "xterm"}
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        results = (given["from"] or given["json"] or Path(folder)).resolve()
        corpus = Corpus(given["folder"].resolve(), results, given["only"])
        for step in (run_cases, samples, run_stories, render)[3 if given["from"] else 0 :]:
            step(corpus)
            print(f"{step.__name__}: {time.process_time():.0f} s of processor time", flush=True)
    for kind, number in sorted(corpus.formats.items()):
        print(f"{kind:22}{number:6} files")
    cases = {each.name.rsplit(".", 2)[0] for each in corpus.folder.iterdir()}
    print(f"{len(cases)} cases, {corpus.formats.total()} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
