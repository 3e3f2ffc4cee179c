"""A lambda that nobody trained, as a job: the runs of a point of the trade-off, at another lambda."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from uge_core.config import RunConfig
from uge_core.errors import ConfigError, StoreError
from uge_core.jobs.form import duration
from uge_core.jobs.queue import ACTIVE, WAITING, Queue
from uge_core.screens.tradeoff import TradeoffView
from uge_core.store import RunStore, StoredRun


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
    source = runs[0].dataset.get("source")
    if not source:
        return LambdaOffer("", "Nobody knows where the data lie, as the runs were trained in Python.", {})
    seconds = max(run.seconds or 0.0 for run in runs)
    words = f"{len(runs)} run{'s' * (len(runs) != 1)}, about {duration(seconds)}; audits come on top"
    return LambdaOffer(words, None, _settings(runs, source, lam))


def enqueue_lambda(offer: LambdaOffer, store: RunStore) -> int:
    """Puts it into the queue and returns the job's number at once; what waits or is trained already is not asked for again.

    Raises:
        StoreError: the offer was refused, or the store cannot be written.
    """
    if offer.refusal:
        raise StoreError(offer.refusal)
    queue = Queue(store)
    same = [job.id for job in queue.list() if job.status in (ACTIVE, WAITING) and job.settings == offer.settings]
    job_id = same[0] if same else queue.add(offer.settings)
    queue.supervise()
    return job_id


def _settings(runs: tuple[StoredRun, ...], source: dict[str, Any], lam: float) -> dict[str, Any]:
    """A job whose runs differ from these in nothing but lambda; at their own lambda they would be these."""
    config = RunConfig.from_json(runs[0].config)
    own = {f.name: getattr(config, f.name) for f in fields(RunConfig) if f.metadata}
    options = {k: v for k, v in own.items() if k not in ("epochs", "seed", "split_seed", "warm_epochs")}
    # Negatives that are not drawn have no number; their own default says the same.
    unread = "block_size" if config.negatives == "listed" else "num_negatives"
    options.pop(unread)
    return {
        "data": source["spec"],
        "attributes": source["attributes"],
        "grid": {
            "sensitive": "+".join(config.sensitive),
            "methods": [config.method],
            "backbones": [config.backbone],
            "lams": [lam],
            "seeds": sorted({int(run.config["seed"]) for run in runs}),
            "split_seeds": sorted({int(run.config["split_seed"]) for run in runs}),
            "epochs": config.epochs,
            "unknown": config.unknown,
            "hidden": config.hidden or "impute",
            "exposure": config.exposure,
            "options": options | config.backbone_options | config.method_options,
        },
        "device": "auto",
        "force": False,
        "deterministic": False,
        "solo": False,
        "projections": [],
    }
