"""The audit: what an embedding gives away, how unequal its predictions are, and what that cost.

Imports no torch, so that any embedding can be judged, wherever it comes from.
"""

from uge_core.audit.base import METRICS, Audit, Cell, Metric, Row
from uge_core.audit.run import audit_embedding

__all__ = ["METRICS", "Audit", "Cell", "Metric", "Row", "audit_embedding"]
