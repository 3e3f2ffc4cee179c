"""Two runs or embeddings compared: what is paired, and that it can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uge_core.audit.version import VERSION
from uge_core.errors import ConfigError, StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import split_links
from uge_core.graph.values import missing_policies
from uge_core.runs.audits import DEFAULT_ATTACKERS, as_embedding, attributes_read
from uge_core.runs.data import check_data
from uge_core.runs.disclosure import release
from uge_core.runs.names import EXTERNAL
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig, split_names

if TYPE_CHECKING:
    from uge_core.audit.compare import Compared, Comparison
from pathlib import Path

from uge_core.files import unsealed
from uge_core.runs.store import RunStore

SCHEMA = "uge-compare/1"


@dataclass(frozen=True, eq=False)
class _Member:
    """One of two, and what it has to have in common with the other."""

    side: Compared
    name: str
    split_seed: int | None
    test_share: float | None
    unknown: str | None


def compare(
    a: npt.ArrayLike | StoredRun,
    b: npt.ArrayLike | StoredRun,
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] | None = None,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    split_seed: int | None = None,
    score: str = "dot",
    store: RunStore | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Differences A - B in leakage and link quality, measured on the same people.

    Args:
        a: a stored run, or (N, d), one row per node in the node table's order.
        b: the other.
        graph: the graph that both embed.
        sensitive: attribute names; None compares every attribute of people.
        attackers: which attackers to try.
        split_seed: of an array, the split that its training used; None: nobody knows, and links are not compared.
        score: of a pair of nodes of an array, "dot", "cosine" or "distance".
        store: what its ledger says was told before is told again (`runs.disclosure`).
        progress: told what is being done.

    Returns:
        The comparison; ``frame()`` is a table.

    Raises:
        ConfigError: the two were trained on different splits or treat missing values differently, an embedding has
            not one finite row per node, or a setting is not allowed.
        GraphError: an attribute the graph does not have.
        StoreError: a run was trained on other data.
    """
    from uge_core.audit.compare import compare_embeddings

    names = None if sensitive is None else split_names(sensitive if isinstance(sensitive, str) else list(sensitive))
    if names == []:
        raise ConfigError("sensitive names no attribute; name at least one, or leave it out for all")
    both = [_member(x, graph, split_seed, score) for x in (a, b)]
    seed, share = _common(both, "split_seed"), _common(both, "test_share")
    policy = _common(both, "unknown")
    known = all(m.split_seed is not None for m in both)
    split = split_links(graph, test_share=share, seed=seed or 0) if known else None
    return compare_embeddings(
        both[0].side,
        both[1].side,
        graph,
        split,
        attributes=names,
        unknown=policy,
        split_seed=seed or 0,
        attackers=attackers,
        disclosure=release(graph, missing_policies(graph, policy), store),
        progress=progress,
    )


def _common(both: Sequence[_Member], field: str) -> Any:
    """What two members agree on; one of which it is not known takes the other's."""
    first, second = (getattr(m, field) for m in both)
    if first is not None and second is not None and first != second:
        raise ConfigError(
            f"{both[0].name} has {field} = {first}, {both[1].name} has {second}; a paired comparison needs the same "
            "people and links, train one again with the other's"
        )
    return second if first is None else first


def _member(given: Any, graph: AttributedGraph, split_seed: int | None, score: str) -> _Member:
    from uge_core.audit.compare import Compared

    if not isinstance(given, StoredRun):
        return _Member(Compared(as_embedding(given, graph), score=score), "the array", split_seed, None, None)
    check_data(given, graph)
    name, z = f"run {given.id}", as_embedding(given.embedding, graph)
    if given.config["method"] == EXTERNAL:
        return _Member(Compared(z, score=given.config["score"]), name, given.config["split_seed"], None, None)
    config = RunConfig.from_json(given.config)
    side = Compared(
        z,
        None if given.twin is None else np.asarray(given.twin),
        frozenset(config.sensitive),
        frozenset(attributes_read(config, graph)),
        config.score,
    )
    return _Member(side, name, config.split_seed, config.test_share, config.unknown)


def compare_seeds(a: Sequence[StoredRun], b: Sequence[StoredRun]) -> Comparison:
    """Differences A - B of two methods over training seeds, from stored audits, with paired t intervals.

    Args:
        a: audited runs that differ in nothing but their seeds.
        b: the other method's, with the same seeds.

    Raises:
        ConfigError: runs without an audit, of different data, settings or seeds, or of fewer than two seeds.
    """
    from uge_core.audit.compare import adjusted, difference, paired_seeds, pairs

    sides = [_by_seed(runs) for runs in (a, b)]
    if list(sides[0]) != list(sides[1]):
        raise ConfigError(
            f"seeds {_listed(sides[0])} against {_listed(sides[1])}; a paired comparison "
            "needs the same seeds on both sides"
        )
    if len({run.dataset["fingerprint"] for runs in sides for run in runs.values()}) > 1:
        raise ConfigError("the runs were trained on different data; compare runs of one graph")
    drawn = {_drawn(run) for runs in sides for run in runs.values()}
    if len(drawn) > 1:
        said = " and ".join("all people" if d is None else f"{d:,} drawn people" for d in drawn)
        raise ConfigError(f"the runs' audits are of {said}; audit them alike: uge audit RUN_ID --people N")
    tables = [[_values(run) for run in runs.values()] for runs in sides]
    rows = []
    for key in dict.fromkeys(k for k in tables[0][0] if k in tables[1][0]):
        metric, attribute, attacker, variant = key
        for exposure, _, _ in pairs(tables[0][0][key], tables[1][0][key]):
            first, second = (
                [v for t in table if (v := t.get(key, {}).get(exposure, t.get(key, {}).get(None))) is not None]
                for table in tables
            )
            if len(first) == len(second) == len(sides[0]):
                rows.append(
                    difference(
                        metric,
                        paired_seeds(first, second),
                        attribute=attribute,
                        attacker=attacker,
                        variant=variant,
                        exposure=exposure,
                        ci_kind="seeds",
                    )
                )
    return adjusted(rows)


def _drawn(run: StoredRun) -> int | None:
    """How many people a run's audit drew; None where it measured all, or nobody knows."""
    try:
        return ((run.audit or {}).get("asked") or {}).get("people")
    except StoreError:  # its rows are there, and will do
        return None


def _by_seed(runs: Sequence[StoredRun]) -> dict[tuple[int, int], StoredRun]:
    """The runs by seed and split seed, ascending."""
    by_seed: dict[tuple[int, int], StoredRun] = {}
    for run in runs:
        if not run.audited or "seed" not in run.config:
            raise ConfigError(
                f"run {run.id} has no {'audit' if not run.audited else 'seed'}; compare audited, trained runs"
            )
        by_seed[run.config["seed"], run.config["split_seed"]] = run
    same = {str({k: v for k, v in run.config.items() if k not in ("seed", "split_seed")}) for run in runs}
    if len(by_seed) != len(runs) or len(same) > 1:
        raise ConfigError(f"runs {', '.join(r.id for r in runs)} must differ in their seeds and in nothing else")
    return dict(sorted(by_seed.items()))


def _values(run: StoredRun) -> dict[tuple[Any, ...], dict[str | None, float]]:
    """A run's measured numbers by what they are, then by exposure.

    An AUC below .5 whose attacker did not learn which way to read is turned, so that seeds do not cancel.
    """
    values: dict[tuple[Any, ...], dict[str | None, float]] = {}
    for row in run.rows:
        if row["value"] is not None and row["evidence"] == "ok":
            key = row["metric"], row["attribute"], row["attacker"], row["variant"]
            value, turned = row["value"], row["metric"] == "auc" and not run.signed
            values.setdefault(key, {})[row["exposure"]] = max(value, 1 - value) if turned else value
    return values


def _listed(seeds: dict[tuple[int, int], StoredRun]) -> str:
    return ", ".join(str(seed) for seed, _ in seeds)


def compare_record(
    comparison: Comparison,
    graph: Mapping[str, Any],
    a: Mapping[str, Mapping[str, Any]],
    b: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The `uge-compare/1` record of a comparison.

    Args:
        comparison: its rows.
        graph: a run's record of its data.
        a: the config of each run on the first side, by its id.
        b: of each on the second.
    """
    dataset = {key: graph[key] for key in ("name", "fingerprint", "num_nodes", "num_edges")}
    sides = {
        name: [{"run_id": run_id, "config": dict(config)} for run_id, config in runs.items()]
        for name, runs in (("a", a), ("b", b))
    }
    return {"schema": SCHEMA, "audit_version": VERSION, "dataset": dataset, **sides, "rows": comparison.to_json()}


def paired_path(store: RunStore, before: str, after: str) -> Path:
    """Where the differences of two runs are kept once they were measured in pairs."""
    return store.comparisons / f"{before}-{after}.json"


def paired_record(store: RunStore, a: StoredRun, b: StoredRun) -> dict[str, Any] | None:
    """The rows "A - B" that were measured in pairs, whichever was A then.

    None without, or where a run was trained again since, or an earlier version of the audit measured the rows than those
    of either run: it tried other attackers.
    """
    newest = any(run.signed for run in (a, b))
    for first, second, turned in ((a, b, False), (b, a, True)):
        try:
            record: dict[str, Any] = unsealed(paired_path(store, first.id, second.id).read_bytes())
        except (OSError, ValueError):
            continue
        if record.get("finished") != [first.finished, second.finished]:
            continue
        if newest and record.get("audit_version", 0) < 3:
            continue
        if turned:
            record["rows"] = [_turned(row) for row in record["rows"]]
        return record
    return None


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row B - A of a row A - B."""
    flip = {k: None if row[k] is None else -row[k] for k in ("value", "ci_low", "ci_high")}
    return dict(row) | {
        "a": row["b"],
        "b": row["a"],
        "value": flip["value"],
        "ci_low": flip["ci_high"],
        "ci_high": flip["ci_low"],
    }


def why_no_pairs(a: StoredRun, b: StoredRun) -> str:
    """Why two runs cannot be measured in pairs, or ""."""
    for run in (a, b):
        if run.finished is None:
            return f"Run {run.id} is {run.status} and has no embedding."
        if not (run.dataset.get("source") or {}).get("spec"):
            return (
                f"Run {run.id} was trained in Python on a graph without a place on disk, so it cannot be loaded again."
            )
    return other_people(a, b)


_SAME = {
    "split_seed": "seeds of the split",
    "test_share": "shares of held-out links",
    "unknown": "policies for missing values",
}


def other_people(a: StoredRun, b: StoredRun, *, but: Collection[str] = ()) -> str:
    """Why two runs are not measured on the same people and links, or ""; settings named in `but` may differ."""
    if a.dataset["fingerprint"] != b.dataset["fingerprint"] and not edited_of(a, b):
        return "They were trained on different graphs, so the people and links are not the same."
    for name, words in _SAME.items():
        first, second = a.config.get(name), b.config.get(name)
        if name not in but and first is not None and second is not None and first != second:
            return f"They have different {words} ({first} and {second}), so the people and links are not the same."
    return ""


def edited_of(a: StoredRun, b: StoredRun) -> StoredRun | None:
    """The one of two runs that was trained on a scenario of the other's graph, or None."""
    of_a, of_b = (dict(run.dataset.get("source") or {}) for run in (a, b))
    made_a, made_b = of_a.pop("scenario", None), of_b.pop("scenario", None)
    if of_a != of_b or bool(made_a) == bool(made_b):
        return None
    edited, plain = (a, b) if made_a else (b, a)
    return edited if (made_a or made_b)["data"] == plain.dataset["fingerprint"] else None
