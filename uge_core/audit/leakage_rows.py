"""Rows of leakage: every attacker on every attribute, and the strongest of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit import leakage
from uge_core.audit.attacker_order import candidates, choice
from uge_core.audit.attackers.base import Shared
from uge_core.audit.base import METRICS, Row
from uge_core.audit.job import AuditRequest, make_row
from uge_core.audit.leakage import MEASURES, Estimate, strongest
from uge_core.audit.permutation import pillai_test
from uge_core.audit.sampling import drawn_words
from uge_core.graph.graph import Attribute
from uge_core.graph.split import ProbeSplit, probe_classes
from uge_core.machine import cores
from uge_core.registry import find

LEAKAGE_VERSION = 6  # counts up when an attacker changes, so that kept floors are measured anew
_LEAST_SHUFFLED = 20  # nodes in a group of the permutation test, on average
_SIDE_BY_SIDE = 4  # attackers at once at most, as each holds its own copy of the inputs

Estimates = Mapping[str, Estimate]


@dataclass(frozen=True, eq=False)
class _Attack:
    """One attacker on one attribute, whatever the embedding.

    Attributes:
        job: what the audit was asked.
        attribute: the attribute.
        everybody: who may be learnt from and tested on.
        attacker: its name.
        as_coded: as the authors' script has it.
        key: what tells its floors from those of other people.
    """

    job: AuditRequest
    attribute: Attribute
    everybody: ProbeSplit
    attacker: str
    as_coded: bool = False
    key: str = ""

    @cached_property
    def probe(self) -> ProbeSplit:
        """The people it learns from and is tested on."""
        return self.job.attacked(self.everybody)

    @property
    def possible(self) -> bool:
        """Whether there are two values to learn and a node to test."""
        return len(self.probe.test) > 0 and len(np.unique(self.probe.classes[self.probe.train])) > 1

    def floor_key(self, dim: int) -> str:
        """What the floor of random embeddings depends on."""
        job, name = self.job, self.attribute.name
        policy, variant = ("level", "as-coded") if self.as_coded else (job.policies[name], "standard")
        data = f"{job.graph.fingerprint}/{name}/{policy}/{job.split_seed}/{job.edges.shape[1]}"
        drawn = job.sampling.key(job.num_people)
        return f"{LEAKAGE_VERSION}/{data}{self.key}{drawn}/{dim}/{self.attacker}/{variant}"

    def measure(self, embedding: FloatArray, shared: Shared) -> Estimates:
        """The measures of one attack; `shared` is what other attacks on this embedding share."""
        probe, scaled = self.probe, not self.as_coded
        prediction = leakage.attack(
            embedding,
            probe.classes,
            probe.train,
            probe.test,
            attacker=self.attacker,
            edges=self.job.edges,
            standardise=scaled,
            calibrate=scaled,
            seed=self.job.split_seed,
            shared=shared,
        )
        return leakage.measure(prediction, probe.labels)

    def floor(self, dim: int, shared: Shared) -> Estimates:
        """The measures on a random embedding."""
        return self.measure(leakage.random_embedding(self.job.graph.num_nodes, dim, seed=self.job.split_seed), shared)

    def rows(self, estimates: Estimates, exposure: str | None, dim: int) -> list[Row]:
        """The measures beside their floors."""
        job, name, probe = self.job, self.attribute.name, self.probe
        measured = any(e.value is not None for e in estimates.values())
        floor: Mapping[str, float | None] = job.floors[self.floor_key(dim)] if measured else {}
        majority = {metric: how.floor(probe.classes, probe.train, probe.test) for metric, how in MEASURES.items()}
        coded = f"as coded: raw inputs, the first {len(self.everybody.train)} rows train, missing is a value"
        learnt, tested = (
            drawn_words(len(drawn), len(of), f"people to {do}")
            for drawn, of, do in (
                (probe.train, self.everybody.train, "learn from"),
                (probe.test, self.everybody.test, "be tested on"),
            )
        )
        return [
            make_row(
                metric,
                estimate,
                coded if self.as_coded else None,
                learnt,
                tested,
                (job.twin_notes if exposure == "unseen" else job.notes).get(name),
                attribute=name,
                attacker=self.attacker,
                variant="as-coded" if self.as_coded else "standard",
                exposure=exposure,
                n=len(probe.test),
                floor_random=floor.get(metric),
                floor_majority=majority[metric] if estimate.value is not None else None,
            )
            for metric, estimate in estimates.items()
            if metric == "micro_f1" or not self.as_coded
        ]


def leakage_rows(job: AuditRequest, attribute: Attribute, step: Callable[[float], None]) -> list[Row]:
    """All attacks on one attribute, side by side; the rows do not depend on how many run at once."""
    name = attribute.name
    measured = job.measured(attribute)
    probe = measured.probe
    members: list[tuple[str | None, FloatArray]] = [(job.exposure_of(name), job.embedding)]
    if job.twin is not None and name in job.treated:
        members.append(("unseen", job.twin))
    attacks = [_Attack(job, attribute, probe, attacker, key=measured.key) for attacker in job.attackers]
    plan = [(attack, *member) for member in members for attack in attacks]
    first = job.graph.defaults.as_coded_rows
    if first is not None and not job.quick and "linear" in job.attackers and attribute in job.attributes:
        classes, labels = probe_classes(attribute, "level")
        taking_part = np.nonzero(classes >= 0)[0]
        as_coded = ProbeSplit(taking_part[taking_part < first], taking_part[taking_part >= first], classes, labels)
        coded = job.without(attribute, as_coded)
        plan.append((_Attack(job, attribute, coded.probe, "linear", as_coded=True, key=coded.key), *members[0]))
    for module in {m for attacker in job.attackers for m in find("audit.attackers", attacker).needs}:
        import_module(module)
    # What is made of the nodes' classes is shared by the attacks on one embedding, by whom they learn from and test on.
    shared: dict[Any, Shared] = defaultdict(Shared)
    floors = {
        attack.floor_key(z.shape[1]): _Task(
            attack.attacker, partial(attack.floor, z.shape[1], shared["floor", z.shape[1], attack.as_coded])
        )
        for attack, _, z in plan
        if attack.possible and not _floor_is_kept(job.floors, attack.floor_key(z.shape[1]))
    }
    attacked = [
        _Task(attack.attacker, partial(attack.measure, z, shared[exposure, attack.as_coded]))
        for attack, exposure, z in plan
    ]
    results = _side_by_side([*floors.values(), *attacked], job.attackers, step)
    for key in floors:
        job.floors[key] = {metric: e.value for metric, e in results.pop(0).items()}
    made = [
        attack.rows(estimates, exposure, z.shape[1])
        for (attack, exposure, z), estimates in zip(plan, results, strict=True)
    ]
    rows: list[Row] = []
    for exposure, embedding in members:
        mine = [row for attack in attacks for row in made.pop(0)] if attacks else []
        estimates = {attack.attacker: results.pop(0) for attack in attacks}
        rows += mine
        if mine:
            worst = [_worst(mine, estimates, metric) for metric in ("auc", *(m for m in MEASURES if m != "auc"))]
            rows += [_tested(worst[0], job, attacks[0], exposure, embedding), *worst[1:]]
    return rows + [row for coded in made for row in coded]


def _floor_is_kept(floors: Mapping[str, Any], key: str) -> bool:
    """Whether a floor was measured, of all that is measured now."""
    return key in floors and MEASURES.keys() <= floors[key].keys()


@dataclass(frozen=True, eq=False)
class _Task:
    """An attack that waits for its turn.

    Attributes:
        attacker: its name.
        measure: carries it out.
    """

    attacker: str
    measure: Callable[[], Estimates]


def _side_by_side(tasks: Sequence[_Task], attackers: Sequence[str], step: Callable[[float], None]) -> list[Estimates]:
    """The tasks' results, in order.

    One attacker's turn comes after the other's: two attackers of one embedding that share what they make of it would
    wait for each other, those of two embeddings do not.
    """
    turns = sorted(range(len(tasks)), key=lambda i: attackers.index(tasks[i].attacker))
    # A task limits its libraries again, as OpenMP keeps that number by thread.
    with threadpool_limits(limits=1), ThreadPoolExecutor(min(cores(), _SIDE_BY_SIDE)) as pool:
        running = {i: pool.submit(tasks[i].measure) for i in turns}
        try:
            for done, i in enumerate(turns, start=1):
                running[i].result()
                step(done / len(tasks))
        finally:
            for future in running.values():
                future.cancel()
    return [running[i].result() for i in range(len(tasks))]


def _worst(rows: Sequence[Row], estimates: Mapping[str, Estimates], metric: str) -> Row:
    """The row of the largest value among the default attackers that look at vectors and labels alone.

    Of one attack without any of these, that of the others. Its floor is theirs too: the largest on random embeddings.
    """
    of = candidates(estimates)
    mine = {r.attacker: r for r in rows if r.metric == metric and r.attacker in of}
    found = strongest({name: estimates[name][metric] for name in of}, share=METRICS[metric].high == 1.0)
    if found is None:
        return replace(mine[of[0]], attacker="worst")
    name, estimate = found
    floors = [r.floor_random for r in mine.values() if r.floor_random is not None]
    return replace(
        mine[name],
        attacker="worst",
        ci_low=estimate.low,
        ci_high=estimate.high,
        floor_random=max(floors, default=None),
        note="; ".join(filter(None, (choice(name, of), mine[name].note))),
    )


def _tested(row: Row, job: AuditRequest, attack: _Attack, exposure: str | None, embedding: FloatArray) -> Row:
    """The row with the permutation test's p-value: over all who are attacked, of a twin over those it knew no value of."""
    probe = attack.probe
    classes = probe.classes
    if exposure == "unseen" or probe is not attack.everybody:
        classes = np.full(len(classes), -1)
        asked = probe.test if exposure == "unseen" else np.concatenate([probe.train, probe.test])
        classes[asked] = probe.classes[asked]
    within, names = _beside(job, row.attribute or "", classes)
    test = None if row.value is None or job.quick else pillai_test(embedding, classes, within=within, seed=job.seed)
    if test is None:
        return row
    nodes = int((classes >= 0).sum())
    said = f"permutation test (Pillai's trace, {nodes} nodes, B = {test.shuffles}"
    said += f", shuffled within {' x '.join(names)}): p = {test.p_value:.3g}" if names else f"): p = {test.p_value:.3g}"
    if exposure == "seen":
        said += ", one-sided evidence of leakage, never of its absence, as training read the attribute"
    return replace(row, p_value=test.p_value, note="; ".join(filter(None, (row.note, said))))


def _beside(job: AuditRequest, tested: str, classes: IntArray) -> tuple[IntArray, list[str]]:
    """(N,) groups of the attributes that were not treated, in which the tested one is shuffled, and their names.

    Those with the fewest values first, as long as groups keep `_LEAST_SHUFFLED` nodes on average.
    """
    joint, names = np.zeros(len(classes), dtype=np.int64), list[str]()
    taking_part = classes >= 0
    others = [a for a in job.graph.audited if a.name not in job.treated and a.name not in tested.split("+")]
    for other in sorted(others, key=lambda a: a.num_values):
        codes = probe_classes(other, "level")[0]
        crossed = np.unique(joint * (codes.max() + 2) + codes + 1, return_inverse=True)[1]
        if taking_part.sum() >= _LEAST_SHUFFLED * len(np.unique(crossed[taking_part])):
            joint, names = crossed, [*names, other.name]
    return joint, names
