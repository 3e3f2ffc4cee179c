"""What the What-if page asks for, one function each: questions to the process, answers as views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uge_core.explore.whatif.client import ask, warm
from uge_core.explore.whatif.edits import edit_from_json
from uge_core.explore.whatif.scenario import Scenario, Scenarios, StoredScenario
from uge_core.runs.store import RunStore
from uge_core.views.whatif import (
    EgoView,
    JudgedView,
    RetrainedView,
    compared_scenarios,
    ego_view,
    judged_view,
    retrained_view,
)


@dataclass(frozen=True)
class WhatifGraph:
    """What can be edited of a run's graph.

    Attributes:
        name: the graph's.
        data: its fingerprint.
        num_nodes: N.
        num_edges: E.
        directed: edges have a direction.
        weighted: edges have weights.
        bipartite: nodes are users and items.
        attributes: by name the size of each group, "under 12" where it is less, and whose `side` it is.
        no_reencode: why edited edges cannot be re-encoded, or None.
        messages: "weighted", "plain" or "none": how the encoder passes messages.
        first: some node ids, those with the most edges.
    """

    name: str
    data: str
    num_nodes: int
    num_edges: int
    directed: bool
    weighted: bool
    bipartite: bool
    attributes: Mapping[str, Mapping[str, Any]]
    no_reencode: str | None
    messages: str
    first: Sequence[str]


def whatif_warm(store: RunStore) -> None:
    """Starts the what-if process, without waiting for it."""
    warm(store)


def whatif_graph(store: RunStore, run: str, attribute: str | None) -> WhatifGraph:
    """What can be edited of a run's graph, which is loaded for it."""
    return WhatifGraph(**ask(store, "describe", run=run, attribute=attribute))


def whatif_find(store: RunStore, run: str, text: str) -> list[str]:
    """Ids of nodes that hold a text."""
    nodes: list[str] = ask(store, "find", run=run, text=text)["nodes"]
    return nodes


def whatif_edit(scenario: Scenario, kind: str, **values: Any) -> Scenario:
    """The scenario with one edit more.

    Raises:
        ConfigError: a value that is not allowed.
    """
    return scenario.with_edit(edit_from_json({"kind": kind} | values))


def whatif_judge(
    store: RunStore, run: str, scenario: Scenario, attribute: str, attackers: Sequence[str] = ("linear",)
) -> JudgedView:
    """Before and after of a scenario; kept with the run where the scenario is stored."""
    return judged_view(_judged(store, run, scenario, attribute, attackers))


def whatif_compare(
    store: RunStore, run: str, first: Scenario, second: Scenario, attribute: str, attackers: Sequence[str] = ("linear",)
) -> Any:
    """Two scenarios side by side, as a table."""
    answers = [_judged(store, run, s, attribute, attackers) for s in (first, second)]
    return compared_scenarios(answers[0], answers[1], (first.name, second.name))


def _judged(store: RunStore, run: str, scenario: Scenario, attribute: str, attackers: Sequence[str]) -> dict[str, Any]:
    answer = ask(store, "judge", run=run, scenario=scenario.to_json(), attribute=attribute, attackers=list(attackers))
    scenarios = Scenarios(store)
    if scenario.name and any(s.scenario.hash == scenario.hash for s in scenarios.list(scenario.data)):
        scenarios.keep(scenario.id, run, answer)
    return answer


def whatif_ego(store: RunStore, run: str, nodes: Sequence[str], scenario: Scenario, attribute: str | None) -> EgoView:
    """The ego network of some nodes as a scenario makes it."""
    answer = ask(
        store,
        "ego",
        run=run,
        nodes=list(nodes),
        scenario=scenario.to_json() if scenario.edits else None,
        attribute=attribute,
    )
    return ego_view(answer, attribute)


def whatif_retrained(store: RunStore, run: str, other: str) -> RetrainedView:
    """A run and the one that was trained on a scenario of its graph, compared in pairs."""
    return retrained_view(ask(store, "compare", a=run, b=other))


def whatif_save(store: RunStore, scenario: Scenario) -> str:
    """Keeps a scenario in the store; returns its id."""
    return Scenarios(store).save(scenario)


def whatif_stored(store: RunStore, data: str) -> list[StoredScenario]:
    """The stored scenarios of a graph, the newest first."""
    return Scenarios(store).list(data)


def whatif_of_runs(store: RunStore, run_ids: Sequence[str]) -> dict[str, str]:
    """Names by id of the stored scenarios of these runs' graphs."""
    data = {store.load(run_id).dataset["fingerprint"] for run_id in run_ids}
    return {s.scenario.id: s.scenario.name for s in Scenarios(store).list() if s.scenario.data in data}


def whatif_delete(store: RunStore, scenario_id: str) -> None:
    """Removes a scenario with what runs gave; runs trained on it stay."""
    Scenarios(store).delete(scenario_id)
