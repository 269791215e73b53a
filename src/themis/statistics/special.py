"""The special functions of scipy that are needed here, without all that its package imports.

`import scipy.special` takes a third of a second, for what makes its functions work with arrays
other than numpy's. The functions themselves are in a compiled module of it, which is loaded alone;
where that fails they come from the package. Whoever imports the package later gets it whole.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING

import scipy

if TYPE_CHECKING:
    from scipy.special import (
        bdtr,
        bdtrc,
        betaincc,
        betaincinv,
        betaln,
        gammaln,
        ndtri,
        xlog1py,
        xlogy,
    )

__all__ = [
    "bdtr",
    "bdtrc",
    "betaincc",
    "betaincinv",
    "betaln",
    "gammaln",
    "ndtri",
    "xlog1py",
    "xlogy",
]

PACKAGE = "scipy.special"
NEEDED = "scipy.linalg"  # some versions link to one of its compiled modules


def _functions() -> ModuleType:
    """A module that has them: the compiled one, unless the package was imported already."""
    if PACKAGE not in sys.modules:
        with suppress(ImportError), _without_their_code(PACKAGE, NEEDED):
            module = importlib.import_module(f"{PACKAGE}._ufuncs")
            if all(hasattr(module, name) for name in __all__):
                return module
    return importlib.import_module(PACKAGE)


@contextmanager
def _without_their_code(*packages: str) -> Iterator[None]:
    """Within, modules of these packages are imported without what the packages import."""
    spared = [name for name in packages if name not in sys.modules]
    for name in spared:
        alone = sys.modules[name] = ModuleType(name)
        alone.__path__ = [f"{folder}/{name.rpartition('.')[2]}" for folder in scipy.__path__]
    try:
        yield
    finally:
        for name in spared:
            del sys.modules[name]


if not TYPE_CHECKING:
    globals().update({name: getattr(_functions(), name) for name in __all__})
