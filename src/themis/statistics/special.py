"""The special functions of scipy that are needed here, without all that its package imports.

`import scipy.special` takes a third of a second, for what makes its functions work with arrays
other than numpy's. The functions themselves are in a compiled module of it, which is loaded alone;
where that fails they come from the package. Whoever imports the package later gets it whole.
"""

from __future__ import annotations

import importlib
import sys
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


def _functions() -> ModuleType:
    """A module that has them: the compiled one, unless the package was imported already."""
    if PACKAGE not in sys.modules:
        alone = ModuleType(PACKAGE)
        alone.__path__ = [f"{folder}/special" for folder in scipy.__path__]
        sys.modules[PACKAGE] = alone
        try:
            module = importlib.import_module(f"{PACKAGE}._ufuncs")
            if all(hasattr(module, name) for name in __all__):
                return module
        except ImportError:
            pass
        finally:
            del sys.modules[PACKAGE]
    return importlib.import_module(PACKAGE)


if not TYPE_CHECKING:
    globals().update({name: getattr(_functions(), name) for name in __all__})
