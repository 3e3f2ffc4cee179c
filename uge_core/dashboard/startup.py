"""What the dashboard gets ready when its server starts, while the browser still loads its own scripts."""

from __future__ import annotations

import importlib
import inspect
import os

from uge_core.datasets import roots
from uge_core.errors import StoreError
from uge_core.runs.sample_audit import first_start
from uge_core.runs.store import RunStore
from uge_core.runs.uploads import uploads_folder

# In the order pages need them. None imports another that may be half loaded in a page's thread at that time.
_FIRST = (
    "pandas",
    "pyarrow",
    "pyarrow.pandas_compat",
    "streamlit.emojis",
    "uge_core.views.frame",
    "uge_core.dashboard.queue",
    "uge_core.views.leakage",
)
_LATER = ("plotly.graph_objects", "uge_core.views.tradeoff", "scipy.special")


def warm_up(*, later: bool = False) -> None:
    """Puts the sample audit into a new store and loads what pages import; pages do without, only slower.

    A store that cannot be written is left for the first page to report.

    Args:
        later: load what the first page does without, so that it need not wait for that.
    """
    for name in _LATER if later else _FIRST:
        importlib.import_module(name)
    if not later:
        # Streamlit asks for it at its first element; what it finds out of every module is kept.
        inspect.stack()
        try:
            first_start(RunStore())
            RunStore().tidy()
        except StoreError:
            return


def limit_roots(*, signed_in: bool) -> None:
    """Says, for this process and those that it starts, which folders graphs may be read from.

    Args:
        signed_in: whether readers sign in; then uploads and samples are all, where no folder is named.
    """
    named = roots.given()
    if named is not None or signed_in:
        store = RunStore()
        fetched = store.root / "datasets"  # public ones
        os.environ[roots.VARIABLE] = roots.joined([uploads_folder(store), fetched, *(named or ())])
