"""Trains a recipe of the paper and measures it twice: as the paper did, and as this package does.

| figure | as published | as measured here |
|---|---|---|
| micro_f1 | Micro-F1 of the authors' script: balanced linear probe, first rows against last | AUC of the strongest attacker, on people whose values training did not see |
| ndcg | NDCG@10 of the authors' script, mostly training links; held-out links on a bipartite graph | attribute-matched NDCG@10 of held-out links, of the twin that did not see those values |
| dp, eo | largest gap of raw probabilities | largest gap of calibrated ones |

Both are rows of one audit of one embedding. A row of results is kept in a file as soon as it is measured; what is there
is not measured again, by this recipe or another one of the same graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uge_core.audit import version
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen
from uge_core.errors import ConfigError, OutOfMemory, UgeError
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.entry import Entry
from uge_core.runs.kept_rows import append_row, read_rows
from uge_core.runs.measured import Audited, Cell, Measure, cell
from uge_core.runs.recipe import SCHEMA, Column, Recipe
from uge_core.runs.timing import duration
from uge_core.training.config import RunConfig, known_settings

_NDCG = {False: "as-coded", True: "held-out"}
"""The published NDCG@10, by whether the graph is bipartite: the authors' script has no candidates there."""


@dataclass(frozen=True)
class Job:
    """A setting that a recipe trains, its seeds in one pass.

    Attributes:
        backbone: the embedding model.
        column: the method.
        treated: the attributes it treats.
        audited: those it is looked at for.
    """

    backbone: str
    column: Column
    treated: tuple[str, ...]
    audited: tuple[str, ...]


def jobs(recipe: Recipe, backbones: Sequence[str] = ()) -> Iterator[Job]:
    """What a recipe trains; no debiasing, and what treats all attributes jointly, serves all of them at once."""
    for backbone in backbones or recipe.backbones:
        for column in recipe.columns:
            if column.entry is None:
                continue
            if column.entry.method == "none" or column.jointly:
                treated = recipe.joint_attributes if column.jointly else ()
                yield Job(backbone, column, treated, treated or recipe.attributes)
            else:
                for attribute in recipe.attributes:
                    yield Job(backbone, column, (attribute,), (attribute,))


def reproduce(
    recipe: Recipe,
    graph: AttributedGraph,
    *,
    rows: Path | None = None,
    seeds: Sequence[int] = (),
    backbones: Sequence[str] = (),
    device: str = "auto",
    on_note: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measures what is missing, and returns the recipe's rows.

    Args:
        recipe: what to train.
        graph: the graph it names.
        rows: a file of JSON lines: what it holds is not measured again, what is measured is added.
        seeds: initialisations; none: the recipe's.
        backbones: of the recipe's; none: all.
        device: "auto", "cpu" or "cuda".
        on_note: given a line as each setting ends, with the time that is probably left.

    Raises:
        ConfigError: the graph is another one, or a backbone is none of the recipe's.
        GraphError: an attribute the graph does not have.
    """
    check_graph(recipe, graph)
    check_backbones(recipe, backbones)
    if rows is not None and not rows.parent.is_dir():
        raise ConfigError(f"{rows}: the folder {rows.parent} is not there")
    names = {a: graph.attribute(a).name for a in (*recipe.attributes, *recipe.joint_attributes)}
    there, earlier = read_rows(rows, SCHEMA)
    if earlier:
        on_note(f"{rows}: {earlier} rows of an earlier schema are left as they are, and not read")
    kept = [r for r in there if r["audit"] == version.VERSION and r["fingerprint"] == graph.fingerprint and r["run"]]

    def found(run: str, audited: Sequence[str]) -> dict[str, Any] | None:
        """A row of this run that has these attributes, whichever recipe it was measured for."""
        return next((row for row in kept if row["run"] == run and {*audited} <= {*row["audited"]}), None)

    measure = Measure(graph, DEFAULT_ATTACKERS, device)
    results: list[dict[str, Any]] = []
    todo, times = list(jobs(recipe, backbones)), list[float]()
    for number, job in enumerate(todo, 1):
        began = time.perf_counter()
        treated, audited = ([names[a] for a in some] for some in (job.treated, job.audited))
        entry = job.column.entry
        if entry is None:
            raise AssertionError("a job has a method")
        words = " ".join([job.backbone, job.column.label, *treated])
        about = {
            "schema": SCHEMA,
            "audit": version.VERSION,
            "data": recipe.data,
            "fingerprint": graph.fingerprint,
            "backbone": job.backbone,
            "method": entry.method,
            "options": dict(entry.options),
            "treated": treated,
            "audited": audited,
        }
        keys: dict[str, RunConfig] = {}
        refused = ""
        try:
            configs = [job_config(recipe, graph, treated, job, seed) for seed in seeds or recipe.seeds]
            keys = {config.run_id(graph.fingerprint): config for config in configs}
            missing = [config for run, config in keys.items() if found(run, audited) is None]
            for run in measure(missing, audited):
                row = about | {
                    "lam": run.fitted.config.lam,
                    "settings": recipe.settings_of(job.column),
                    "run": run.id,
                    "seed": run.fitted.config.seed,
                    "seconds": round(run.seconds, 1),
                    "figures": {a: _figures(run, a, graph.bipartite) for a in audited},
                    "refused": None,
                }
                kept.append(row)
                append_row(rows, row)
            said = "measured" if missing else "there already"
            times += [time.perf_counter() - began] if missing else []
        except UgeError as error:
            said = str(error)
            # What is short of memory today may be trained tomorrow.
            refused = "" if isinstance(error, OutOfMemory) else said
        measured = [one for run in keys if (one := found(run, audited))]
        if refused and not measured:
            row = about | {"lam": entry.lam, "settings": recipe.settings_of(job.column), "run": None, "seed": None}
            row |= {"refused": refused}
            if row not in there:
                append_row(rows, row)
            measured = [row]
        results += measured
        left = f", about {duration(sum(times) / len(times) * (len(todo) - number))} left" if times else ""
        on_note(f"{number} of {len(todo)}: {words}: {said}{left if number < len(todo) else ''}")
    return results


def check_backbones(recipe: Recipe, backbones: Sequence[str]) -> None:
    """Refuses backbones that the recipe does not have."""
    for name in backbones:
        if name not in recipe.backbones:
            raise ConfigError(f"{name!r} is no backbone of {recipe.name}; its backbones: {', '.join(recipe.backbones)}")


def check_graph(recipe: Recipe, graph: AttributedGraph) -> None:
    """Refuses another graph than the recipe's, whose figures would stand beside published ones of this one."""
    if recipe.nodes and graph.num_nodes != recipe.nodes:
        raise ConfigError(
            f"{recipe.name} is of {recipe.data} with {recipe.nodes:,} nodes; {graph.name} has {graph.num_nodes:,}"
        )


def job_config(recipe: Recipe, graph: AttributedGraph, treated: Sequence[str], job: Job, seed: int) -> RunConfig:
    """The run of a setting and a seed.

    Raises:
        ConfigError: the method cannot serve here.
    """
    entry = job.column.entry or Entry("none")
    known = known_settings(job.backbone, entry.method)
    asked = {k: v for k, v in {**recipe.settings, **job.column.settings}.items() if k in known}
    return RunConfig.resolve(
        graph,
        sensitive=list(treated),
        backbone=job.backbone,
        method=entry.method,
        lam=entry.lam,
        seed=seed,
        options=asked | dict(entry.options),
    )


def _figures(run: Audited, attribute: str, bipartite: bool) -> dict[str, dict[str, Cell]]:
    rows = run.rows
    worst = cell(rows, "unseen", "note", metric="auc", attacker="worst", attribute=attribute)
    named = {k: v for k, v in worst.items() if k != "note"} | {"attacker": chosen(worst.get("note"))}

    def pair(metric: str, ours: str, raw: str | None) -> dict[str, Cell]:
        return {
            "published": cell(rows, "seen", metric=metric, variant=raw, attribute=attribute),
            "ours": cell(rows, "seen", metric=metric, variant=ours, attribute=attribute),
        }

    return {
        "usable": {"ours": cell(rows, "seen", "note", metric="usable")},
        "micro_f1": {
            "published": cell(
                rows,
                "seen",
                metric="micro_f1",
                attacker="linear",
                variant="standard" if bipartite else "as-coded",
                attribute=attribute,
            ),
            "ours": named,
        },
        "ndcg": {
            "published": cell(rows, "seen", metric="ndcg_at_10", variant=_NDCG[bipartite]),
            "ours": cell(rows, "unseen", metric="ndcg_at_10_matched", variant="held-out", attribute=attribute),
            "exported": cell(rows, "seen", metric="ndcg_at_10_matched", variant="held-out", attribute=attribute),
        },
        "dp": pair("dp", "calibrated", None),
        "eo": pair("eo", "calibrated", "held-out"),
    }
