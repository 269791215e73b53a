"""Sweeps: the exact score of a domain that is never held whole equals the definition."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import themis
from tests import missing_worlds
from tests.missing_worlds import sets_of
from tests.tied_worlds import LEADER, random_world
from tests.worlds import Case, cases
from themis.events import Progress
from themis.scores import scorer, sweep
from themis.subjects.model_files import load_model

QUICK = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No domain is held, and pieces have a few inputs."""
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 7)


def held(measured: Any) -> Any:
    """A score without what differs where rows are sampled to explain it."""
    return replace(
        measured,
        **{name: None for name in ("account", "reruns", "joint") if hasattr(measured, name)},
        executions=0,
        cache_hits=0,
        **{name: () for name in ("witnesses", "regions", "direction") if hasattr(measured, name)},
        **({"flip_rate": None} if hasattr(measured, "flip_rate") else {}),
    )


@QUICK
@given(cases())
def test_sweeps_of_tiny_worlds_equal_the_definitions(swept: None, case: Case) -> None:
    names, world = case.names, case.world
    audit = case.audit(exact=True)
    group = audit.group(*names)
    assert group.method == "exact"
    assert group.score == pytest.approx(world.group(set(names)), abs=1e-9)
    causal = audit.causal(*names)
    if sum(v.bins is not None and v.name in names for v in world.variables) > 1:
        assert [note.values["reason"] for note in causal.notes if "exact" in note.code] == ["bins"]
        return
    assert causal.method == "exact"
    assert causal.low == causal.score == causal.high
    assert causal.score == pytest.approx(world.causal(set(names)), abs=1e-9)
    for witness in causal.witnesses:
        assert set(witness.differs_in) <= set(names)
        for row, output in zip(witness.inputs, witness.outputs, strict=True):
            assert world.valid(row)
            assert case.decide(row) == output


@QUICK
@given(case=cases(binned=False))
def test_a_sweep_gives_what_the_domain_gives_that_is_held(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole = [getattr(case.audit(), each)(*case.names) for each in ("causal", "group")]
        patch.setattr(scorer, "EXACT_LIMIT", 0)
        patch.setattr(sweep, "PIECE", 5)
        audit = case.audit(exact=True)
        swept = [getattr(audit, each)(*case.names) for each in ("causal", "group")]
    assert list(map(held, swept)) == list(map(held, whole))
    assert swept[0].flip_rate == pytest.approx(whole[0].flip_rate, abs=1e-12)
    assert len(swept[0].direction) == len(whole[0].direction)
    assert bool(swept[0].witnesses) == bool(whole[0].witnesses)


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_keep_missing_values_in_the_context(swept: None, seed: int) -> None:
    here = missing_worlds.world(seed)
    run = themis.Audit(here.decide, here.schema, seed=1, deterministic=True, exact=True)
    for names in sets_of(here):
        causal, group = run.causal(*names), run.group(*names)
        assert causal.method == group.method == "exact"
        assert causal.score == pytest.approx(here.causal(set(names)), abs=1e-9)
        assert group.score == pytest.approx(here.group(set(names)), abs=1e-9)


@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("seed", [5, 8])
def test_sweeps_rewrite_what_follows(swept: None, seed: int, binned: bool) -> None:
    world = random_world(seed, binned=binned)
    run = themis.Audit(world.decide, world.schema, seed=1, deterministic=True, exact=True)
    causal = run.causal(LEADER)
    assert causal.method == "exact"
    assert causal.score == pytest.approx(float(world.causal((LEADER,))), abs=1e-9)
    held_fast = run.causal("mate")
    assert [n.values["reason"] for n in held_fast.notes if n.code == "exact-not-possible"] == [
        "following"
    ]


def test_degrees_are_swept_like_decisions(swept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = themis.Schema(a=range(3), b=range(4), c=range(5))
    output = themis.Output(distance="relational", min=0, max=13, cut=6)
    audit = themis.Audit(graded, schema, outputs=output, exact=True)
    swept_score = audit.causal("a"), audit.group("a")
    monkeypatch.undo()
    audit = themis.Audit(graded, schema, outputs=output)
    assert [each.score for each in swept_score] == [
        audit.causal("a").score,
        audit.group("a").score,
    ]


def graded(row: dict[str, int]) -> int:
    return row["a"] * 3 + row["b"] + row["c"]


SIZES = {"race": 3, "sex": 2, "income": 40, "savings": 40, "age": 30}
LARGE = themis.Schema({name: range(size) for name, size in SIZES.items()})


@themis.batch
def loan(people: themis.InputTable) -> Any:
    points = people["income"] + people["savings"]
    return points > np.where(people["race"] > 0, 49, 39)


def test_a_failure_leaves_an_interval_and_with_bins_no_exact_score(swept: None) -> None:
    def fails(row: dict[str, int]) -> bool:
        if row["income"] == 9:
            raise ValueError
        return row["income"] + row["race"] > 5

    schema = themis.Schema(race=range(2), income=range(10), age=range(4))
    options: dict[str, Any] = {"exact": True, "max_failures": 1.0}
    audit = themis.Audit(fails, schema, **options)
    causal, group = audit.causal("race"), audit.group("race")
    assert (causal.low, causal.high, causal.unknown) == (0.1, 0.2, 4)
    assert (group.low, group.high, group.unknown) == (0.0, 0.2, 8)
    binned = themis.Schema(race=range(2), income=themis.Integers(0, 9, bins=[5]), age=range(4))
    sampled = themis.Audit(fails, binned, **options).causal("income")
    assert sampled.method == "sampled"
    assert [n.values["reason"] for n in sampled.notes if n.code == "exact-not-possible"] == [
        "failures"
    ]


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_what_an_interrupt_leaves_holds_the_truth(
    monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    truth = getattr(themis.Audit(loan, LARGE), measure)("race", exact=True)
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 10_000)
    calls = 0

    @themis.batch
    def interrupted(people: themis.InputTable) -> Any:
        nonlocal calls
        calls += 1
        if calls == 20:
            raise KeyboardInterrupt
        return people["income"] + people["savings"] > 39 + 10 * (people["race"] > 0)

    told: list[Any] = []
    audit = themis.Audit(interrupted, LARGE, exact=True, probe=0, listen=told.append)
    audit.sampler.keep_on_interrupt = True
    score = getattr(audit, measure)("race")
    assert score.stopped == "interrupted"
    assert score.low < truth.score < score.high
    assert score.low < score.score < score.high
    assert score.score == pytest.approx(truth.score, abs=0.2)  # of what was run
    assert 0 < score.samples < 288_000
    progress = [each for each in told if isinstance(each, Progress)]
    assert all(each.low <= truth.score <= each.high for each in progress)
    assert {each.expected for each in progress} == {288_000}


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_limits_that_a_sweep_would_break_are_kept_by_sampling(swept: None, measure: str) -> None:
    few = getattr(themis.Audit(loan, LARGE, exact=True, max_executions=200_000), measure)("race")
    assert few.method == "sampled"
    assert few.executions <= 200_000
    assert [n.values["reason"] for n in few.notes if n.code == "exact-not-possible"] == [
        "max-executions"
    ]
    short = getattr(themis.Audit(loan, LARGE, exact=True, max_seconds=1e-4), measure)("race")
    assert short.method == "sampled"


def test_the_papers_procedures_are_never_exact() -> None:
    with pytest.raises(themis.RequestError, match='exact: contradicts stopping = "paper"'):
        themis.Audit(loan, LARGE, exact=True, stopping="paper")


@pytest.mark.slow
def test_a_sweep_is_the_same_in_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    from themis.engine.executors import spread

    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    scores = []
    for where in (None, "processes:2"):
        with themis.Audit(loan, LARGE, exact=True, executor=where) as audit:
            scores.append([audit.causal("race"), audit.group("race")])
    assert scores[0] == scores[1]
    assert scores[0][0].method == "exact"
    assert scores[0][0].samples == 288_000


@pytest.mark.slow
@pytest.mark.slow
def test_memory_stays_flat_however_many_inputs_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 2**13)
    peaks = []
    for ages in (10, 10, 100):  # the first one imports what is needed
        schema = themis.Schema(
            {**{name: range(size) for name, size in SIZES.items()}, "age": range(ages)}
        )
        audit = themis.Audit(loan, schema, exact=True, probe=0)
        gc.collect()
        tracemalloc.start()
        assert audit.causal("race").samples == 9_600 * ages
        assert audit.group("race").samples == 9_600 * ages
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = peaks[2] - peaks[1]
    assert grown < 0.25 * 9_600 * 90, peaks  # bytes for each input: a list of them has more


def test_where_the_flips_are_is_found_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 4_000)
    region = themis.Values(["a", "b", "c", "d"], weights=[6, 2, 1, 1])
    schema = themis.Schema(region=region, race=range(2), income=range(100), age=range(50))

    @themis.batch
    def decide(people: themis.InputTable) -> Any:
        return (people["region"] == "b") & (people["race"] == 1)

    score = themis.Audit(decide, schema, exact=True).causal("race")
    assert score.score == 0.2
    assert score.direction[0].lost == pytest.approx(0.2)
    (found,) = score.regions
    assert [found.coverage_low > 0.99, found.share_low < 0.2 < found.share_high] == [True, True]
    assert all(row["region"] == "b" for witness in score.witnesses for row in witness.inputs)


def test_wide_sets_are_swept_unless_their_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = themis.Schema(race=range(20), income=range(30), age=range(4))

    @themis.batch
    def decide(people: themis.InputTable) -> Any:
        return people["age"] * 300 > people["race"] * people["income"]

    whole = themis.Audit(decide, schema).causal("race", "income")
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "MOST_TOGETHER", 600)
    swept = themis.Audit(decide, schema, exact=True).causal("race", "income")
    assert (swept.method, swept.score) == (whole.method, whole.score) == ("exact", 0.25)
    monkeypatch.setattr(sweep, "MOST_TOGETHER", 599)
    for measure in ("causal", "group"):
        score = getattr(themis.Audit(decide, schema, exact=True), measure)("race", "income")
        assert [n.values["reason"] for n in score.notes if n.code == "exact-not-possible"] == [
            "too-wide"
        ]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_network_is_swept_and_each_batch_moves_once(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: make test-slow does it")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU for PyTorch")
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 6_000)
    module = torch.nn.Sequential(torch.nn.Linear(3, 1))
    with torch.no_grad():
        module[0].weight[:] = torch.tensor([[-25.0, 1.0, 1.0]])
        module[0].bias[:] = -99.0
    moved: list[int] = []
    move = torch.as_tensor

    def counted(inputs: Any, **options: Any) -> Any:
        moved.append(len(inputs))
        return move(inputs, **options)

    schema = themis.Schema(race=range(3), income=range(100), savings=range(100))
    audit = themis.Audit(themis.model(module, cut=0.0, device=device), schema, exact=True, probe=0)
    monkeypatch.setattr(torch, "as_tensor", counted)
    score = audit.causal("race")
    points = np.add.outer(np.arange(100), np.arange(100))
    assert score.score == pytest.approx(((points >= 99) & (points < 149)).mean())
    assert moved[:5] == [6_000] * 5  # the whole domain; what follows explains the score


NETWORK = themis.Schema(race=range(3), income=range(60), savings=range(60))
WEIGHTS = (  # whole numbers: sums are the same in whatever order they are made
    np.array([[-20, 1, 1], [3, 2, -1], [5, -1, 2], [1, 1, 0]], dtype=np.float32),
    np.array([-50, -20, -30, 4], dtype=np.float32),
    np.array([[2, -1, 1, -1]], dtype=np.float32),
    np.array([-7], dtype=np.float32),
)


def _save_network(path: Path) -> None:
    """The network as an ONNX file whose label is 1 from zero on."""
    helper, numpy_helper, kinds = _onnx().helper, _onnx().numpy_helper, _onnx().TensorProto
    names = ("w1", "b1", "w2", "b2", "zero")
    arrays = (*WEIGHTS, np.zeros(1, np.float32))
    flat = numpy_helper.from_array(np.array([-1]), "flat")
    parts = [numpy_helper.from_array(each, name) for each, name in zip(arrays, names, strict=True)]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
        helper.make_node("GreaterOrEqual", ["y", "zero"], ["high"]),
        helper.make_node("Cast", ["high"], ["number"], to=kinds.INT64),
        helper.make_node("Reshape", ["number", "flat"], ["label"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", kinds.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("label", kinds.INT64, [None])],
        [*parts, flat],
    )
    opset = [helper.make_opsetid("", 17)]
    _onnx().save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def _onnx() -> Any:
    return pytest.importorskip("onnx", reason="onnx is not installed: make test-slow does it")


def _swept(subject: Any) -> tuple[float, ...]:
    with themis.Audit(subject, NETWORK, exact=True, probe=0) as audit:
        causal, group = audit.causal("race"), audit.group("race")
    assert causal.method == group.method == "exact"
    return causal.score, causal.low, causal.high, group.score, *(each.rate for each in group.groups)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(sweep, "PIECE", 2_000)


@pytest.mark.slow
def test_an_onnx_model_is_swept_like_the_network_that_it_is(pieces: None, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    _save_network(tmp_path / "network.onnx")
    first, bias, second, shift = WEIGHTS

    @themis.batch
    def network(people: themis.InputTable) -> Any:
        hidden = np.maximum(people.to_numpy().astype(np.float32) @ first.T + bias, 0)
        return ((hidden @ second.T + shift)[:, 0] >= 0).astype(int)

    found = _swept(load_model(tmp_path / "network.onnx", NETWORK))
    assert found == _swept(network)
    assert 0.05 < found[0] < 0.95


@pytest.mark.slow
def test_an_onnx_model_is_swept_like_the_torch_module(pieces: None, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed: make test-slow does it")
    _save_network(tmp_path / "network.onnx")
    layers = (torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
    with torch.no_grad():
        for layer, (weight, own) in zip(layers, (WEIGHTS[:2], WEIGHTS[2:]), strict=True):
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(own))
    module = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    assert _swept(load_model(tmp_path / "network.onnx", NETWORK)) == _swept(
        themis.model(module, cut=0.0)
    )
