"""What the What-if page asks for, one function each: questions to the process, answers as views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uge_core.explore.whatif.client import ask, warm
from uge_core.explore.whatif.edits import edit_from_json
from uge_core.explore.whatif.scenario import Scenario, Scenarios, StoredScenario
from uge_core.runs.store import RunStore
from uge_core.views.whatif import (
    EgoView,
    JudgedView,
    LinksView,
    PeopleView,
    RetrainedView,
    SearchView,
    compared_scenarios,
    ego_view,
    judged_view,
    links_view,
    on_screen,
    people_view,
    retrained_view,
    search_view,
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


def whatif_find(store: RunStore, run: str, text: str) -> SearchView:
    """Whom a text may mean: a part of an id, values, or a list of ids."""
    return search_view(ask(store, "find", run=run, text=text), text)


def whatif_people(store: RunStore, run: str, nodes: Sequence[str], scenario: Scenario) -> PeopleView:
    """Values and links of some people as a table, with what a scenario makes of them."""
    return people_view(ask(store, "people", run=run, nodes=list(nodes), scenario=scenario.to_json()))


def whatif_edit(store: RunStore, run: str, scenario: Scenario, kind: str, **values: Any) -> Scenario:
    """The scenario with one edit more, which fits the graph.

    Raises:
        UgeError: a value that is not allowed, or an edit that does not fit.
    """
    made = scenario.with_edit(edit_from_json({"kind": kind} | values))
    ask(store, "check", run=run, scenario=made.to_json())
    return made


def whatif_toggle(store: RunStore, run: str, scenario: Scenario, edge: Sequence[str]) -> Scenario:
    """Without an edge of the graph; with it again where the scenario drops it.

    Raises:
        UgeError: there is no such edge.
    """
    pair = tuple(sorted(edge))
    for place, edit in enumerate(scenario.edits):
        edges = getattr(edit, "edges", ())
        if edit.kind == "drop-edges" and pair in edges:
            rest = [e for e in edges if e != pair]
            if not rest:
                return scenario.without(place)
            fewer = edit_from_json({"kind": "drop-edges", "edges": rest})
            return replace(scenario, edits=(*scenario.edits[:place], fewer, *scenario.edits[place + 1 :]))
    return whatif_edit(store, run, scenario, "drop-edges", edges=[list(pair)])


def whatif_draft(store: RunStore, token: str, data: str) -> Scenario | None:
    """Edits of a graph that were not saved, by the token in the address; None where there are none.

    Who found the token in an address may read them; what becomes of them is kept under another token.
    """
    return Scenarios(store).draft(token, data)


def whatif_keep(store: RunStore, token: str, scenario: Scenario) -> str:
    """Keeps edits, so that a reload finds them; returns the token, "" where there is nothing to keep.

    Args:
        store: the store.
        token: what an earlier call of the same session returned, or "" for a new one; never one out of an address.
        scenario: the edits.
    """
    return Scenarios(store).keep_draft(token, scenario)


def whatif_judge(
    store: RunStore, run: str, scenario: Scenario, attribute: str, attackers: Sequence[str] = ("linear",)
) -> JudgedView:
    """Before and after of a scenario; kept with the run where the scenario is stored."""
    view = judged_view(_judged(store, run, scenario, attribute, attackers))
    return replace(
        view,
        table=on_screen(view.table),
        groups=on_screen(view.groups),
        weights=on_screen(view.weights),
        cells=on_screen(view.cells),
        moved=on_screen(view.moved),
    )


def whatif_compare(
    store: RunStore, run: str, first: Scenario, second: Scenario, attribute: str, attackers: Sequence[str] = ("linear",)
) -> Any:
    """Two scenarios side by side, as a table."""
    answers = [_judged(store, run, s, attribute, attackers) for s in (first, second)]
    return on_screen(compared_scenarios(answers[0], answers[1], (first.name, second.name)))


def whatif_links(
    store: RunStore, run: str, node: str, scenario: Scenario, attribute: str | None, other: str | None = None
) -> LinksView:
    """The ten first predicted links of somebody before and after; after by a run trained on the edits, if there is one."""
    answer = ask(store, "links", run=run, node=node, scenario=scenario.to_json(), other=other)
    return links_view(answer, node, attribute)


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
    view = retrained_view(ask(store, "compare", a=run, b=other))
    return replace(view, table=on_screen(view.table))


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
