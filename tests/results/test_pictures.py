"""Is a picture saved as what it is, without the loss of anything else?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.show.test_notebook import SEARCHED, causal, group, result
from themis.errors import RequestError


def test_a_picture_replaces_an_earlier_one(tmp_path: Path) -> None:
    place = tmp_path / "a.svg"
    place.touch()
    for shown in (causal(), group(), SEARCHED, result(causal(), group())):
        shown.plot().save(place)
        assert place.read_text() == shown.plot().svg


@pytest.mark.parametrize("name", ["a.png", "a.pdf", "a", "a.svg.png"])
def test_a_picture_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match=r"pictures are SVG; name it 'a(\.svg)?\.svg'"):
        causal().plot().save(tmp_path / name)
    assert not (tmp_path / name).exists()
