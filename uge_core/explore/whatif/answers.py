"""What the what-if process does with a request: holds graphs and runs in memory, and answers in plain records.

Nothing here is written to disk but what `Scenarios` keeps. torch is loaded when a run is first re-encoded.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from uge_core.arrays import FloatArray
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.audit.base import Audit, Row
from uge_core.audit.metrics import ordered_metrics
from uge_core.datasets.stamp import data_stamp
from uge_core.errors import ConfigError
from uge_core.explore.people import MOST_SUGGESTED, search, values_of
from uge_core.explore.whatif.edits import DropEdges, Places
from uge_core.explore.whatif.ego import ego_network, positions
from uge_core.explore.whatif.links import first_links
from uge_core.explore.whatif.paired import compare_runs
from uge_core.explore.whatif.reencode import moved, reencode, refusal
from uge_core.explore.whatif.rejudge import Subject, judge, judge_thresholds, touched_cells
from uge_core.explore.whatif.scenario import Scenario
from uge_core.explore.whatif.source import load_source, scenario_graph, source_of
from uge_core.explore.whatif.weights import Weights, weights_of_run
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.split import LinkSplit, split_as, split_links
from uge_core.graph.suppression import FEWEST
from uge_core.runs.audits import score_of
from uge_core.runs.data import check_data
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig

_GRAPHS, _RUNS, _ANSWERS = 2, 4, 64
_FOUND = 50  # nodes that a description names

_Value = TypeVar("_Value")


class _LruCache:
    """The values that were asked for last, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        # Held while something is made, so that who asks for it meanwhile waits for it; `make` may ask for more.
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        with self._lock:
            if key not in self._held:
                self._held[key] = make()
            self._held.move_to_end(key)
            value: _Value = self._held[key]
            while len(self._held) > self._most:
                self._held.popitem(last=False)
            return value


@dataclass(frozen=True, eq=False)
class _Open:
    """A run with its graph; `key` is another one where the run was trained again or a file of the graph changed."""

    key: Hashable
    run: StoredRun
    graph: AttributedGraph
    places: Places
    config: RunConfig | None
    split: LinkSplit | None


def _split(run: StoredRun, config: RunConfig | None, graph: AttributedGraph) -> LinkSplit | None:
    """A run's split, or None when nobody knows it."""
    if config is not None:
        return split_links(
            graph, test_share=config.test_share, validation_share=config.validation, seed=config.split_seed
        )
    seed = run.config.get("split_seed")
    return None if seed is None else split_links(graph, seed=seed)


class Answers:
    """Answers requests about the runs of one store."""

    def __init__(self, store: RunStore) -> None:
        """Nothing is loaded yet."""
        self.store = store
        self._graphs, self._runs, self._answers = _LruCache(_GRAPHS), _LruCache(_RUNS), _LruCache(_ANSWERS)
        self._floors: dict[str, Any] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request: `what` names it, the rest are its arguments.

        Raises:
            UgeError: a text for the person who asked.
        """
        requests: dict[str, Callable[..., dict[str, Any]]] = {
            "hello": lambda: {},
            "describe": self.describe,
            "find": self.find,
            "people": self.people,
            "check": self.check,
            "links": self.links,
            "ego": self.ego,
            "judge": self.judge,
            "compare": self.compare,
        }
        what = str(request.get("what"))
        if what not in requests:
            raise ConfigError(f"the what-if process knows no {what!r}; allowed: {', '.join(requests)}")
        return requests[what](**{k: v for k, v in request.items() if k != "what"})

    def describe(self, run: str, attribute: str | None = None) -> dict[str, Any]:
        """What can be edited of a run's graph, and which tiers it has; `attribute` will be asked about next."""
        opened = self._open(run)
        graph = opened.graph
        people = graph.num_nodes if graph.num_users is None else graph.num_users
        first = np.argsort(-graph.degree[:people], kind="stable")[:_FOUND]
        return {
            "name": graph.name,
            "data": graph.fingerprint,
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "directed": graph.directed,
            "weighted": graph.weighted,
            "bipartite": graph.bipartite,
            "attributes": {a.name: {"values": _sizes(a), "side": a.side} for a in graph.attributes},
            "no_reencode": refusal(opened.run),
            "messages": _messages(opened.run),
            "first": graph.ids(first),
        }

    def find(self, run: str, text: str) -> dict[str, Any]:
        """The nodes whose ids hold a text, or who have the values it names; of a list of ids, those there are.

        `nodes` are ids, `values` their values in the same order, `total` how many fit; `named` are the ids of a list
        with commas, semicolons or lines between them, and `missing` those of it that nobody has.
        """
        opened = self._open(run)
        found = search(opened.graph, text, most=MOST_SUGGESTED)
        parts = [part for part in map(str.strip, re.split("[,;\n]", text)) if part]
        named = [p for p in dict.fromkeys(parts) if p in opened.places] if len(parts) > 1 else []
        return {
            "nodes": opened.graph.ids(found.nodes),
            "values": [values_of(opened.graph, int(n)) for n in found.nodes],
            "total": found.total,
            "named": named,
            "missing": [p for p in dict.fromkeys(parts) if p not in named] if named else [],
        }

    def people(self, run: str, nodes: Sequence[str], scenario: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Values and links of some nodes as they are, and as a scenario makes them; and the ids that nobody has."""
        opened = self._open(run)
        graph, _ = self._edited(opened, _scenario(opened, scenario))
        there = [name for name in nodes if name in opened.places]
        at = opened.places.nodes(there)
        return {
            "missing": [name for name in nodes if name not in opened.places],
            "people": [
                {
                    "id": name,
                    "before": values_of(opened.graph, int(node)),
                    "after": values_of(graph, int(node)),
                    "links": [int(opened.graph.degree[node]), int(graph.degree[node])],
                }
                for name, node in zip(there, at, strict=True)
            ],
        }

    def check(self, run: str, scenario: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing, where the edits fit the graph.

        Raises:
            ConfigError: one does not.
        """
        opened = self._open(run)
        self._edited(opened, _scenario(opened, scenario))
        return {}

    def links(
        self, run: str, node: str, scenario: Mapping[str, Any] | None = None, other: str | None = None
    ) -> dict[str, Any]:
        """The ten first predicted links of a node, as things are and as a scenario makes them.

        Args:
            run: the run.
            node: a node's id.
            scenario: the edits.
            other: a run that was trained on them, whose embedding and graph then make what is after.
        """
        opened = self._open(run)
        trial = _scenario(opened, scenario)
        (at,) = opened.places.nodes([node]).tolist()
        graph, split = self._edited(opened, trial)
        before = first_links(opened.run.embedding, score_of(opened.run), opened.graph, opened.split, at)
        why_not = refusal(opened.run) if trial.of_edges else None
        if other is not None:
            trained = self._open(other)
            tier, why_not = "re-train", None
            after = first_links(trained.run.embedding, score_of(trained.run), trained.graph, trained.split, at)
        else:
            z, tier = opened.run.embedding, "re-judge"
            if trial.of_edges and why_not is None and split is not None:
                z, tier = self._encoded(opened, trial), "re-encode"
            after = first_links(z, score_of(opened.run), graph, split, at)
        return {
            "tier": tier,
            "why_not": why_not,
            "before": [_candidate(opened.graph, n, s) for n, s in before],
            "after": [_candidate(graph, n, s) for n, s in after],
        }

    def ego(
        self, run: str, nodes: Sequence[str], scenario: Mapping[str, Any] | None = None, attribute: str | None = None
    ) -> dict[str, Any]:
        """The ego network of some nodes under a scenario."""
        opened = self._open(run)
        trial = _scenario(opened, scenario)
        graph, split = self._edited(opened, trial)
        known = split if split is not None else split_links(graph, test_share=0.0)
        weights = self._weights(opened, trial, attribute)
        gone = [edge for e in trial.edits if isinstance(e, DropEdges) for edge in e.edges]
        dropped = np.sort(np.stack([opened.places.nodes([e[i] for e in gone]) for i in (0, 1)]), axis=0)
        n = np.int64(graph.num_nodes)
        there = np.isin(dropped[0] * n + dropped[1], graph.edges[0] * n + graph.edges[1])
        network = ego_network(graph, known, weights, opened.places.nodes(nodes).tolist(), dropped=dropped[:, ~there])
        ends = np.array([(e["a"], e["b"]) for e in network.edges], dtype=np.int64).reshape(-1, 2).T
        places = positions(len(network.nodes), ends, sum(n["centre"] for n in network.nodes))
        return asdict(network) | {
            "nodes": [n | {"x": x, "y": y} for n, (x, y) in zip(network.nodes, places, strict=True)],
            "sensitive": list(weights.sensitive) if weights else [],
            "note": weights.note if weights else None,
            "bipartite": graph.bipartite,
        }

    def judge(
        self, run: str, scenario: Mapping[str, Any], attribute: str, attackers: Sequence[str] = ("linear",)
    ) -> dict[str, Any]:
        """Before and after of a scenario: leakage, DP, EO, weights of the touched cells, and how far nodes moved."""
        began = time.monotonic()
        opened = self._open(run)
        trial = _scenario(opened, scenario)
        key = ("judge", opened.key, trial.hash, attribute, tuple(attackers))
        answer = self._answers.get(key, lambda: self._judge(opened, trial, attribute, tuple(attackers)))
        return answer | {"seconds": time.monotonic() - began}

    def compare(self, a: str, b: str, attackers: Sequence[str] = DEFAULT_ATTACKERS) -> dict[str, Any]:
        """A run on a graph and one that was trained on a scenario of it, in pairs."""
        opened, other = self._open(a), self._open(b)
        return self._answers.get(
            ("compare", opened.key, other.key, tuple(attackers)),
            lambda: compare_runs(opened.run, other.run, opened.graph, other.graph, attackers, store=self.store),
        )

    def ready(self, run: str, attribute: str | None = None) -> None:
        """Loads and measures what a first answer about a run would wait for."""
        opened = self._open(run)
        with suppress(ImportError, RuntimeError):
            import uge_core.kernels.pairs
        if attribute is not None:
            self._before(opened, (opened.graph.attribute(attribute).name,), ("linear",), None)
            self._weights(opened, Scenario(opened.graph.fingerprint), attribute)
        if refusal(opened.run) is None:
            import uge_core.training.fit  # noqa: F401

    def _before(
        self, opened: _Open, names: tuple[str, ...], attackers: tuple[str, ...], threshold: float | None
    ) -> Audit:
        parts = ("parity",) if threshold is not None else ("leakage", "parity")
        return self._answers.get(
            ("before", opened.key, names, attackers, threshold),
            lambda: judge(
                self._subject(opened),
                opened.graph,
                opened.split,
                attributes=names,
                attackers=attackers,
                parts=parts,
                threshold=threshold,
                floors=self._floors,
            ),
        )

    def _judge(self, opened: _Open, scenario: Scenario, attribute: str, attackers: tuple[str, ...]) -> dict[str, Any]:
        graph, split = self._edited(opened, scenario)
        why_not = refusal(opened.run) if scenario.of_edges else None
        encoded = scenario.of_edges and why_not is None
        names = tuple(dict.fromkeys([attribute, *scenario.attributes]))
        people = {a.name for a in opened.graph.audited}
        names = tuple(n for n in names if n in people)
        before = self._subject(opened)
        after = before
        far: list[dict[str, Any]] = []
        nodes = opened.places.nodes(scenario.nodes) if scenario.nodes else np.zeros(0, np.int64)
        if encoded and split is not None:
            z = self._encoded(opened, scenario)
            # The twin has no parameters of its own, so what is said is about the exported embedding alone.
            after = Subject(z, None, {}, before.config, before.score)
            ends = np.concatenate([opened.graph.edges, graph.edges], axis=1)
            edited = np.unique(
                np.concatenate([[], *(opened.places.nodes(_ends(e)) for e in scenario.edits if e.of_edges)])
            ).astype(np.int64)
            far = [asdict(m) for m in moved(np.asarray(before.embedding), z, edited, ends)]
        tier = "re-encode" if encoded else "re-judge"
        rows = self._rows(opened, after, graph, split, names, attackers, scenario.hash, tier)
        thresholds = judge_thresholds(scenario.threshold)
        if thresholds:
            rows += self._rows(opened, after, graph, split, names, (), scenario.hash, tier, thresholds)
        weights = [self._weights(opened, s, attribute) for s in (Scenario(opened.graph.fingerprint), scenario)]
        touched = self._touched(opened, scenario, nodes)
        cells, more = touched_cells(weights[0], weights[1], touched)
        return {
            "scenario": scenario.to_json(),
            "words": [e.words for e in scenario.edits],
            "tier": tier,
            "why_not": why_not,
            "attributes": list(names),
            "rows": rows,
            "moved": far,
            "twin_left": encoded and opened.run.twin is not None,
            "weights": {
                "sensitive": list(weights[0].sensitive) if weights[0] else [],
                "before": weights[0].diagnostics() if weights[0] else None,
                "after": weights[1].diagnostics() if weights[1] else None,
                "note": weights[1].note if weights[1] else None,
                "cells": [asdict(c) for c in cells],
                "more": more,
            },
        }

    def _encoded(self, opened: _Open, scenario: Scenario) -> FloatArray:
        """What the run's encoder gives on the edited graph."""

        def make() -> FloatArray:
            graph, split = self._edited(opened, scenario)
            assert split is not None
            return reencode(opened.run, graph, split, opened.split)

        return self._answers.get(("encoded", opened.key, scenario.hash), make)

    def _rows(
        self,
        opened: _Open,
        after: Subject,
        graph: AttributedGraph,
        split: LinkSplit | None,
        names: tuple[str, ...],
        attackers: tuple[str, ...],
        edits: str,
        tier: str,
        thresholds: tuple[float, float] | None = None,
    ) -> list[dict[str, Any]]:
        """Rows before and after, side by side."""
        parts = ("parity",) if thresholds else ("leakage", "parity")
        first, second = thresholds or (None, None)
        started = self._before(opened, names, attackers, first)
        ended = judge(
            after,
            graph,
            split,
            attributes=names,
            attackers=attackers,
            parts=parts,
            threshold=second,
            floors=self._floors,
        )
        return _side_by_side(started, ended, tier, thresholds)

    def _touched(self, opened: _Open, scenario: Scenario, nodes: Any) -> Any:
        """The nodes whose groups an edit changes, and those it names."""
        changed = [nodes]
        edited, _ = self._edited(opened, scenario)
        for a, b in zip(opened.graph.attributes, edited.attributes, strict=True):
            if a is not b:
                changed.append(
                    np.nonzero(np.array([*a.labels, "", ""])[a.codes] != np.array([*b.labels, "", ""])[b.codes])[0]
                )
        return np.unique(np.concatenate(changed)).astype(np.int64)

    def _subject(self, opened: _Open) -> Subject:
        run = opened.run
        twin = None if run.twin is None else np.asarray(run.twin)
        return Subject(np.asarray(run.embedding), twin, run.hidden, opened.config, score_of(run))

    def _weights(self, opened: _Open, scenario: Scenario, attribute: str | None) -> Weights | None:
        def make() -> Weights | None:
            graph, split = self._edited(opened, scenario)
            known = split if split is not None else split_links(graph, test_share=0.0)
            return weights_of_run(opened.config, graph, known, attribute=attribute)

        return self._answers.get(("weights", opened.key, scenario.hash, attribute), make)

    def _edited(self, opened: _Open, scenario: Scenario) -> tuple[AttributedGraph, LinkSplit | None]:
        if not scenario.edits:
            return opened.graph, opened.split

        def make() -> tuple[AttributedGraph, LinkSplit | None]:
            graph = scenario_graph(opened.graph, scenario, opened.places)
            return graph, None if opened.split is None else split_as(graph, opened.split)

        return self._answers.get(("graph", opened.key, scenario.hash), make)

    def _open(self, run_id: str) -> _Open:
        run = self.store.load(run_id)
        source = source_of(run)
        place = repr(sorted(source.items())), data_stamp(source["spec"], self.store.root)
        key = (run.id, run.finished, *place)

        def make() -> _Open:
            graph, places = self._graphs.get(place, lambda: _with_places(load_source(source, self.store)))
            check_data(run, graph)
            config = None if run.config["method"] == EXTERNAL else RunConfig.from_json(run.config)
            return _Open(key, run, graph, places, config, _split(run, config, graph))

        return self._runs.get(key, make)


def _with_places(graph: AttributedGraph) -> tuple[AttributedGraph, Places]:
    return graph, Places(graph)


def _scenario(opened: _Open, record: Mapping[str, Any] | None) -> Scenario:
    return Scenario.from_json(record) if record else Scenario(opened.graph.fingerprint)


def _candidate(graph: AttributedGraph, node: int, score: float) -> dict[str, Any]:
    return {"id": graph.ids([node])[0], "values": values_of(graph, node), "score": score}


def _ends(edit: Any) -> list[str]:
    return [node for edge in edit.edges for node in edge]


def _sizes(a: Attribute) -> dict[str, str]:
    """The size of each group in words."""
    few = a.side != "items"
    return {
        label: f"under {FEWEST}" if few and 0 < n < FEWEST else f"{n:,}"
        for label, n in zip(a.labels, a.sizes.tolist(), strict=True)
    }


def _messages(run: StoredRun) -> str:
    from uge_core.registry import find

    if run.config["method"] == EXTERNAL:
        return "none"
    return str(find("backbones", run.config["backbone"]).messages)


_LEAKAGE = tuple(m.name for m in ordered_metrics("leakage"))
_SHOWN: Mapping[str, tuple[str | None, ...]] = {
    **dict.fromkeys(_LEAKAGE, ("standard",)),
    "dp": ("calibrated", None),
    "eo": ("calibrated", "held-out", "all-edges"),
}


def _side_by_side(
    before: Audit, after: Audit, tier: str, thresholds: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """The rows of both by what they measure; what only one side has is left out."""

    def key(row: Row) -> tuple[Any, ...]:
        return row.metric, row.attribute, row.attacker, row.variant, row.exposure

    later = {key(r): r for r in Audit.from_json(after.to_json())}
    return [
        {
            "before": Audit((row,)).to_json()[0],
            "after": Audit((later[key(row)],)).to_json()[0],
            "tier": tier,
            "thresholds": list(thresholds) if thresholds else None,
        }
        for row in before
        if row.variant in _SHOWN.get(row.metric, ()) and key(row) in later
    ]
