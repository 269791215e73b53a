"""Is the program still in layers? Who may import whom, and what is public.

LAYERS is the one table of it. A module may import what stands before it: modules of the layers
above it in the list, and of its own layer those on its left. Imports inside functions and for
type checking count like all others. A new module is one word in the right place.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import themis

SOURCE = Path(themis.__file__).parent

LAYERS: dict[str, str] = {
    # name: modules in order, without the leading "themis."
    "foundation": "_version errors events settings row_files steps toml_text",
    "schema": "ranges characteristics _expressions _columns constraints schema",
    "population": "inputs uniform blocks populations reference streams rows row_values",
    "statistics": "intervals noise_bounds estimation group_rules spot_proofs decisions lattice",
    "subjects": """
        outputs outcomes answer_labels worker subjects subjects.base subjects.functions
        subjects.models
        subjects.onnx_models subjects.model_files subjects.shell_lines subjects.programs
        subjects.processes subjects.texts subjects.layouts subjects.command subjects.lines
        subjects.slots subjects.culprits subjects.worker subjects.templates subjects.credentials
        subjects.addresses subjects.pacing subjects.loop_thread subjects.http_answers
        subjects.http_client subjects.http_requests subjects.http_exchange subjects.http
        subjects.loading
    """,
    "engine": """
        cache_lock cache_file cache cache_contents failures recall combining runner suite_files
        suites readings variants stored_rows tables trials sampling known
    """,
    "results": """
        shown results saved_shape saved_results result_schema acceptances replay_results saved_tests
    """,
    "scores": """
        harm witnesses shrinking conditions suggestions regions explanations causal group row_codes
        within people_runs generated apparent exact paper scores probe
    """,
    "search": """
        level_rates flip_cells searched_inputs flips tried_inputs search causal_decider
        spot_estimates search_estimates exact_search paper_search searcher search_facts search_noise
    """,
    "file": """
        xml_elements settings_xml toml_lines file_format file_complaints config config_places
        starter drafts column_types from_data from_json_schema
    """,
    "audit": """
        checks knowledge result_contrasts differences baselines remarks views row_audit work replay
        audit checker demo
    """,
    "display": """
        display_parts display_words display_noise_words display_result_words display_people
        display_scores display_overview display display_cache display_search_words display_search
        display_check_words display_checks display_apparent display_limits html plots frames
        assertions progress progress_search display_replay display_differences themis
    """,
    "reports": """
        reports reports.markup reports.words reports.room reports.style reports.document
        reports.digest reports.svg reports.ratios reports.again reports.verdict reports.cautions
        reports.scores reports.groups reports.set_levels reports.lattice_drawing
        reports.lattice reports.people reports.pairs reports.harm reports.regions reports.method
        reports.page reports.annex_tables reports.annex_log reports.annex reports.findings
        reports.markdown reports.junit reports.sarif reports.github reports.score_table
        reports.formats
    """,
    "command": """
        cli_options cli_errors cli_targets cli_plan display_plan display_demo cli_run cli_session
        cli_cache cli_source cli_init cli_search cli_apparent cli_check cli_replay cli_diff
        cli_report cli __main__ claims shared_audits pytest_plugin
    """,
}

EXCEPTIONS = {
    ("shown", "html"): "a result shows itself in a notebook; imported when it is shown",
    ("shown", "plots"): "a result draws itself; imported when it is drawn",
    ("shown", "frames"): "a result becomes a data frame; imported when it does",
    ("results", "assertions"): "a score says whether it is within a limit; imported when asked",
}

# Modules that stay ignorant on purpose: all that they may import of the package.
ONLY = {
    "intervals": "",
    "noise_bounds": "",
    "estimation": "errors intervals",
    "group_rules": "errors intervals estimation",
    "spot_proofs": "intervals",
    "decisions": "errors intervals spot_proofs",
    "lattice": "",
    "shown": "html plots frames",
    "results": "_version characteristics shown assertions",
    "search_facts": "results decisions",
    "acceptances": "results",
    "knowledge": "results search_facts",
    "result_contrasts": "results",
    "differences": "_version knowledge result_contrasts results search_facts",
    "baselines": "differences knowledge result_contrasts results",
    "checks": "acceptances config results search_facts",
    "display_parts": "",
    "display_words": "results search_facts",
    "display_noise_words": "results display_words",
    "display_people": "results display_parts display_words",
    "display_scores": "results display_parts display_words display_noise_words display_people",
    "display_overview": "results display_parts display_words",
    "display_result_words": "results display_words search_facts",
    "display_check_words": "results display_words display_search_words",
    "display": """
        results display_parts display_words display_noise_words display_result_words display_scores
        display_overview
    """,
    "display_apparent": """
        results display_parts display_words display_result_words display_scores display
    """,
    "display_cache": "cache_contents display_parts display_words",
    "display_search_words": "results search_facts display_words",
    "html": "results display_words display_noise_words display_search_words",
    "plots": "results display_words display_search_words",
    "frames": "errors results",
    "progress": "events display_parts display_words",
    "events": "",
    "errors": "",
    "worker": "",
}

PUBLIC = [
    "Audit",
    "CausalScore",
    "ConfigError",
    "DiscriminationError",
    "Group",
    "GroupScore",
    "Harm",
    "InconclusiveError",
    "InconclusiveWarning",
    "InputTable",
    "Integers",
    "LimitError",
    "Mistake",
    "MistakesError",
    "Output",
    "Plot",
    "Progress",
    "Reals",
    "Region",
    "Replay",
    "ReplayedSet",
    "ReplayedTest",
    "RequestError",
    "Result",
    "Schema",
    "SchemaError",
    "SearchProgress",
    "SearchResult",
    "SubjectError",
    "TestedSet",
    "ThemisError",
    "Values",
    "Witness",
    "__version__",
    "batch",
    "keywords",
    "to_frame",
]

ORDER = [module for modules in LAYERS.values() for module in modules.split()]


def layer_of(module: str) -> str:
    return next(layer for layer, modules in LAYERS.items() if module in modules.split())


def modules() -> dict[str, Path]:
    """Every module of the package by its name without `themis.`; the package itself is `themis`."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name or "themis"] = path
    return found


def imports_of(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it."""
    known = modules()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}:{node.lineno}: write imports in full: themis.…"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [n if _short(n) in known else str(node.module) for n in inner]
        else:
            continue
        for name in names:
            if name == "themis" or name.startswith("themis."):
                yield _short(name)


def _short(name: str) -> str:
    return name.removeprefix("themis.")


@pytest.mark.parametrize("module", modules())
def test_every_module_stands_in_one_layer(module: str) -> None:
    assert ORDER.count(module) == 1, (
        f"{module!r} is {'in no layer' if module not in ORDER else 'there more than once'}: "
        "put it into LAYERS of tests/test_architecture.py, behind all that it imports"
    )


def test_no_layer_names_a_module_that_is_gone() -> None:
    assert not set(ORDER) - modules().keys()


@pytest.mark.parametrize("module", [each for each in modules() if each in ORDER])
def test_modules_import_only_what_stands_before_them(module: str) -> None:
    place = ORDER.index(module)
    upward = {
        name
        for name in imports_of(modules()[module])
        if name in ORDER and ORDER.index(name) > place and (module, name) not in EXCEPTIONS
    }
    assert not upward, (
        f"{module} (layer {layer_of(module)}) imports {', '.join(sorted(upward))}, which stands "
        "behind it: move what it needs down, hand it over as an argument, or move the module"
    )


@pytest.mark.parametrize(("module", "imported"), EXCEPTIONS)
def test_every_exception_is_still_needed(module: str, imported: str) -> None:
    assert imported in imports_of(modules()[module])


@pytest.mark.parametrize(("module", "allowed"), ONLY.items())
def test_ignorant_modules_stay_ignorant(module: str, allowed: str) -> None:
    assert set(imports_of(modules()[module])) <= set(allowed.split())


def test_reports_are_made_of_results_and_words_alone() -> None:
    words = """
        _version errors characteristics results search_facts display_words display_result_words
        display_search_words display_check_words
    """
    known = {*words.split(), *LAYERS["reports"].split()}
    for module in LAYERS["reports"].split():
        assert set(imports_of(modules()[module])) <= known, module


@pytest.mark.parametrize(
    "layer", ["schema", "population", "statistics", "engine", "scores", "search"]
)
def test_nothing_below_the_audit_prints_or_knows_the_terminal(layer: str) -> None:
    for module in LAYERS[layer].split():
        tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert "print" not in names, f"{module} prints; raise an error or send an event"
        roots = {
            alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not roots & {"rich", "typer", "click"}, module


def test_public_names_are_these() -> None:
    assert sorted(themis.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", [each for each in PUBLIC if not each.startswith("_")])
def test_public_names_can_be_imported_and_say_what_they_are(name: str) -> None:
    thing = getattr(themis, name)
    text = inspect.getdoc(thing)
    assert text
    assert not text.startswith(f"{name}("), "a docstring of its own, not the dataclass's"


@pytest.mark.parametrize("module", [each for each in modules() if each not in ("__main__",)])
def test_every_module_says_in_its_first_line_what_it_is_for(module: str) -> None:
    text = ast.get_docstring(ast.parse(modules()[module].read_text(encoding="utf-8"))) or ""
    assert text or module == "_version"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        importlib.import_module("themis").Oracle  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("module", ["themis", "themis.cli"])
def test_starting_up_imports_nothing_heavy(module: str) -> None:
    heavy = ("numpy", "scipy", "pydantic", "pandas", "sklearn")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def layers_table() -> str:
    """LAYERS for ARCHITECTURE.md: every module may import what stands before it."""
    lines = ["| layer | modules |", "|---|---|"]
    for layer, names in LAYERS.items():
        shown = " · ".join(f"`{name}`" for name in names.split())
        lines.append(f"| {layer} | {shown} |")
    return "\n".join(lines) + "\n"
