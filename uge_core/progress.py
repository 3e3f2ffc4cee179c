"""What a long job tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a long job stands, or a remark on it.

    Attributes:
        stage: "training", "auditing", "projecting", "comparing", "fetching", or "note" for a remark that is to be
            shown.
        done: epochs, runs or bytes done.
        total: epochs, runs or bytes in all.
        text: what is being done, or the remark, for people.
        seconds_left: an estimate, or None.
        loss: of a training the mean loss over the runs of the pass, as of the last logged epoch, or None.
        job_seconds_left: an estimate for all that follows too, other passes and audits, or None.
    """

    stage: str
    done: int
    total: int
    text: str
    seconds_left: float | None = None
    loss: float | None = None
    job_seconds_left: float | None = None


def rounded(loss: float) -> str:
    """A loss for people: four decimals, of a huge one its magnitude."""
    return f"{loss:.4f}" if abs(loss) < 1e6 else f"{loss:.3g}"


OnProgress = Callable[[Progress], None]
