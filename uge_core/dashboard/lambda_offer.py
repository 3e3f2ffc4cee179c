"""A lambda that nobody trained, as a job: the runs of a point of the trade-off, at another lambda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uge_core.dashboard.jobs.like import settings_like
from uge_core.dashboard.jobs.queue import Queue
from uge_core.errors import ConfigError, StoreError
from uge_core.runs.store import RunStore
from uge_core.runs.timing import duration
from uge_core.views.tradeoff import TradeoffView


@dataclass(frozen=True)
class LambdaOffer:
    """What training a series at another lambda would take.

    Attributes:
        words: runs and time, as long as those of the series took.
        refusal: why it cannot be done from here, or None.
        settings: the job's.
    """

    words: str
    refusal: str | None
    settings: dict[str, Any]


def lambda_offer(view: TradeoffView, series: str, lam: float) -> LambdaOffer:
    """What it takes to train a series at `lam`, with the settings and all the seeds of its points.

    Args:
        view: the trade-off.
        series: one of `TradeoffView.series`.
        lam: the weight of the penalty, 0 or more.

    Raises:
        ConfigError: lam is below 0 or no number.
    """
    if not 0 <= lam < float("inf"):
        raise ConfigError(f"λ = {lam} is out of range; allowed: 0 or more (0.5 is the paper's choice)")
    mine = [p for p in view.points if p.series == series]
    if any(p.lam == lam for p in mine):
        return LambdaOffer("", f"{series} was trained at λ {lam:g} already.", {})
    runs = max(mine, key=lambda p: len(p.runs)).runs
    if not (runs[0].dataset.get("source") or {}).get("spec"):
        return LambdaOffer("", "Nobody knows where the data lie, as the runs were trained in Python.", {})
    seeds, splits = (sorted({int(run.config[name]) for run in runs}) for name in ("seed", "split_seed"))
    settings = settings_like(runs[0], lams=[lam], seeds=seeds, split_seeds=splits) | {"device": "auto"}
    seconds = max(run.seconds or 0.0 for run in runs)
    words = f"{len(runs)} run{'s' * (len(runs) != 1)}, about {duration(seconds)}; audits come on top"
    return LambdaOffer(words, None, settings)


def enqueue_lambda(offer: LambdaOffer, store: RunStore) -> int:
    """Puts it into the queue and returns the job's number at once.

    What waits or is trained already is not asked for again.

    Raises:
        StoreError: the offer was refused, or the store cannot be written.
    """
    if offer.refusal:
        raise StoreError(offer.refusal)
    return Queue(store).ask(offer.settings)
