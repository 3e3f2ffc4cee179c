"""The audit: what an embedding gives away, how unequal its predictions are, and what that cost.

Imports no torch, so that any embedding can be judged, wherever it comes from. What measures, and scipy with it,
loads when it is asked for: pages that show measured rows do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uge_core.audit.base import METRICS, Audit, Cell, Metric, Row

if TYPE_CHECKING:
    from uge_core.audit.run import audit_embedding

__all__ = ["METRICS", "Audit", "Cell", "Metric", "Row", "audit_embedding"]


def __getattr__(name: str) -> Any:
    if name != "audit_embedding":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from uge_core.audit.run import audit_embedding

    return audit_embedding
