"""Optional packages: imported when they are first needed, or one line that says which extra of sharnir brings them."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtra(ImportError):
    """A feature needs a package that is not installed; the message says how to get it."""


def need(module: str, extra: str = "") -> Any:
    """Import an optional module, or say in one line which extra of sharnir brings it; without one, the package itself."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        wanted = f'"sharnir[{extra}]"' if extra else package
        raise MissingExtra(f"{package} is not installed: pip install {wanted}") from None
