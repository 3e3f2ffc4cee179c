"""What the dashboard gets ready when its server starts, while the browser still loads its own scripts."""

from __future__ import annotations

import importlib

from uge_core.errors import StoreError
from uge_core.sample_audit import first_start
from uge_core.store import RunStore

# In the order pages need them. None imports another that may be half loaded in a page's thread at that time.
_FIRST = ("pandas", "pyarrow", "uge_core.screens.frame", "uge_core.jobs.screen", "uge_core.views")
_LATER = ("plotly.graph_objects", "uge_core.screens.tradeoff", "scipy.special")


def warm_up() -> None:
    """Puts the sample audit into a new store and loads what pages import; pages do without, only slower.

    A store that cannot be written is left for the first page to report.
    """
    for name in _FIRST:
        importlib.import_module(name)
    try:
        first_start(RunStore())
    except StoreError:
        return
    for name in _LATER:
        importlib.import_module(name)
