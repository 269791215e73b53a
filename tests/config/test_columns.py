"""Are files of rows with very many values drafted in bounded memory, and whatever the pieces?"""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from themis.config.from_rows import draft_from_data
from themis.inputs import columns, row_files
from themis.inputs.row_files import read_pieces


def _write_csv(path: Path, table: dict[str, list[Any]]) -> Path:
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def drafted(path: Path, **sizes: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(row_files if name == "CHUNK" else columns, name, size)
        return draft_from_data(read_pieces(path), source=path.name, protected=["kind"]).text()


def large(folder: Path, count: int = 3_000) -> Path:
    return _write_csv(
        folder / "rows.csv",
        {
            "id": list(range(7, count + 7)),
            "word": [f"word {index * index % 2_999}" for index in range(count)],
            "price": [f"{index * 37 % 2_000 / 4}" for index in range(count)],
            "amount": [5 * (index * 41 % 2_500) if index % 50 else "NA" for index in range(count)],
            "late": [index // 2 if index < count - 1 else "n.n." for index in range(count)],
            "kind": ["ab"[index % 3 == 0] for index in range(count)],
        },
    )


@pytest.mark.parametrize("held", [2**20, 2_048])
def test_a_draft_does_not_depend_on_the_size_of_pieces(tmp_path: Path, held: int) -> None:
    path = large(tmp_path)
    texts = {drafted(path, CHUNK=size, HELD=held) for size in (97, 1_000, 50_000)}
    assert len(texts) == 1


def test_of_very_many_values_kind_ends_and_step_are_those_of_all_rows(tmp_path: Path) -> None:
    path = large(tmp_path)
    whole, sampled = drafted(path), drafted(path, HELD=2_048)
    assert "# id: left out: it names the rows" in sampled
    assert "more than 341 different values: how often they occur is taken from" in sampled
    assert "different values: how often" not in whole
    for line in ("price = { min = 0.0, max = 500.0, step = 0.25, ", "amount = { min = 0, max = "):
        assert line in whole
        assert line in sampled
    ends = r"\namount = { min = \d+, max = \d+, step = \d+"  # the bins are those of the sample
    assert re.findall(ends, whole) == re.findall(ends, sampled) != []
    whole, sampled = (" ".join(text.replace("\n#", "").split()) for text in (whole, sampled))
    assert "60 rows have no value here ('NA')" in whole
    assert "60 rows have no value here ('NA')" in sampled
    assert "late: left out: more than 341 different texts" in sampled  # the last row is no number
    assert 'kind = { values = ["a", "b"], weights = [0.667, 0.333]' in sampled  # counted exactly


def test_a_sample_of_rows_is_about_as_the_rows_are(tmp_path: Path) -> None:
    """The quarters of 3,000 numbers, guessed from about 300: within five standard errors."""
    amounts = [index * 41 % 2_999 for index in range(3_000)]
    path = _write_csv(
        tmp_path / "rows.csv", {"amount": amounts, "kind": ["ab"[a % 2] for a in amounts]}
    )
    text = " ".join(drafted(path, HELD=2 * 400).replace("\n#", "").split())
    found = re.search(r"bins = (\[.*?\]), weights", text)
    assert found is not None
    edges = json.loads(found[1])
    assert all(abs(edge - 750 * (place + 1)) < 5 * 87 for place, edge in enumerate(edges)), edges
    assert edges != [750, 1_500, 2_250]


def test_a_draft_holds_no_more_than_its_share_of_values(tmp_path: Path) -> None:
    """Twice the rows take no more memory: counted in bytes held at once."""
    peaks = []
    for count in (5_000, 10_000):
        path = _write_csv(
            tmp_path / f"{count}.csv",
            {"id": list(range(count)), "kind": ["ab"[index % 2] for index in range(count)]},
        )
        tracemalloc.start()
        drafted(path, CHUNK=250, HELD=2_048)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
