"""The third tier of What-if: a run's settings trained again on a scenario's graph, through the queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from uge_core.dashboard.jobs.like import settings_like
from uge_core.dashboard.jobs.queue import Job, Queue
from uge_core.dashboard.queue import JobCard, card_of
from uge_core.dashboard.training_form import expected_again
from uge_core.errors import ConfigError, NotReadYet, StoreError
from uge_core.explore.whatif.edits import Threshold
from uge_core.explore.whatif.scenario import Scenario
from uge_core.explore.whatif.source import load_source, scenario_graph, source_of
from uge_core.runs.data import scenario_of
from uge_core.runs.names import EXTERNAL, config_words
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.timing import between

_IN_VAIN = "these edits leave the graph as it is, so that the training would give run A again; edit a value or an edge"


@dataclass(frozen=True)
class RetrainOffer:
    """What training a run's settings on an edited graph would take.

    Attributes:
        words: settings and time.
        refusal: why it cannot be done, and what would do, or None.
    """

    words: str
    refusal: str | None


def retrain_offer(run_id: str, scenario: Scenario, store: RunStore) -> RetrainOffer:
    """Whether a run's settings can be trained on the graph a scenario makes, and how long that takes."""
    run = store.load(run_id)
    try:
        _settings(run, named_scenario(scenario))
    except (ConfigError, StoreError) as error:
        return RetrainOffer("", str(error))
    trains, audit = expected_again(run, store)
    low, high = (getattr(trains, end) + (getattr(audit, end) if audit else 0.0) for end in ("low", "high"))
    with_twin = ", with its twin" if run.config.get("exposure") == "both" else ""
    words = (
        "Run A's settings and seed, from the start, on the edited graph "
        f"({config_words(run.config, 'method', 'sensitive', 'backbone', 'seed', 'epochs', typed=False)}"
        f"{with_twin}): {between(low, high)}{' with its audit' if audit else '; its audit comes on top'}, by "
        f"{trains.source}."
    )
    return RetrainOffer(words, None)


def retraining(run_id: str, scenario: Scenario, store: RunStore) -> JobCard | None:
    """The newest job that trains a run's settings on a scenario's graph, or None."""
    return next((card_of(job, Queue(store)) for job in _jobs(run_id, scenario, store)), None)


def _jobs(run_id: str, scenario: Scenario, store: RunStore) -> Iterator[Job]:
    """The jobs that train a run's settings on a scenario's graph, the newest first."""
    for job in Queue(store).list():
        record = job.settings.get("scenario") or {}
        if job.settings.get("like") == run_id and record.get("sha256") == scenario.hash:
            yield job


def named_scenario(scenario: Scenario) -> Scenario:
    """The scenario, under a name of its own where it has none."""
    return scenario if scenario.name.strip() else replace(scenario, name=f"edits {scenario.hash[:8]}")


def retrain(run_id: str, scenario: Scenario, store: RunStore) -> int:
    """Puts a job into the queue that trains a run's settings on the graph a scenario makes; returns its number.

    The training starts from its seed, as the run's did, so that the two differ in the edits alone. What waits or is
    being trained already is not asked for again.

    Args:
        run_id: the run whose settings are taken.
        scenario: of the graph that run was trained on; it needs a name.
        store: where both live.

    Raises:
        ConfigError: the run was not trained here or began from another's end, the scenario is empty or has no name, or
            its edits leave the graph as it is.
        GraphError, StoreError: the run does not say where its data lie, or they cannot be read.
    """
    run = store.load(run_id)
    if not scenario.edits or not scenario.name.strip():
        raise ConfigError("a scenario needs an edit and a name to be trained on; save it first")
    settings = _settings(run, scenario)
    # A copy of the tensors of a .pt file may be gone; its job reads the file itself.
    with suppress(NotReadYet):
        graph = load_source(source_of(run), store, tensors=store.tensors)
        if scenario_graph(graph, scenario).fingerprint == run.dataset["fingerprint"]:
            raise ConfigError(_IN_VAIN)
    return Queue(store).ask(settings)


def _settings(run: StoredRun, scenario: Scenario) -> dict[str, Any]:
    if run.config["method"] == EXTERNAL:
        raise ConfigError(
            "this embedding came from elsewhere, so nothing is known that could train it again; choose as run A one "
            "that was trained here"
        )
    source = source_of(run)
    if source.get("scenario"):
        raise ConfigError("this run was trained on a scenario already; choose a run on the graph as it is")
    if scenario.edits and all(isinstance(edit, Threshold) for edit in scenario.edits):
        raise ConfigError(_IN_VAIN)
    if run.config.get("warm_from") is not None:
        raise ConfigError(
            "this run began from another's end, so that training it from its seed would change more than the edits; "
            "choose as run A one that was trained from its seed"
        )
    return settings_like(run) | {"scenario": scenario.to_json(), "like": run.id}


def retrained(run_id: str, scenario: Scenario, store: RunStore) -> str | None:
    """The finished run that has a run's settings on a scenario's graph, or None."""
    run = store.load(run_id)
    mine = {k: v for k, v in run.config.items() if k != "dataset"}
    # Other edits that make the same graph were trained before, maybe.
    taught = {trained_id for job in _jobs(run_id, scenario, store) for trained_id in job.runs}
    for other in store.list(audits=False, archived=True):
        same = {k: v for k, v in other.config.items() if k != "dataset"} == mine
        made = scenario_of(other.dataset)
        if same and other.status == "finished" and (made == scenario.hash or (made and other.id in taught)):
            return other.id
    return None
