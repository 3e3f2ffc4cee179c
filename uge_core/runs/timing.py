"""How fast this machine trains and audits: what was measured here, and what that says of what is to come.

A pass of training and an audit leave their seconds in the store, beside the work they were: the numbers that
all steps of the members hold (`Backbone.step_floats`), twins included; or what the attackers and pair counts of an
audit cost by rule. Seconds over work is a rate. It holds for one graph, backbone and set of methods; where there is
none of these, the next like it is taken and the range is wider. A machine that does other things is slower: a rate is
stored as of a machine that does nothing else, by its load average, and an estimate's upper end counts the load of now.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.audit.attackers.base import MANY_VALUES
from uge_core.audit.metrics import EXACT_NODES, MOST_PEOPLE
from uge_core.machine import cores
from uge_core.registry import build_options, find

if TYPE_CHECKING:
    from uge_core.graph.graph import Attribute, AttributedGraph
    from uge_core.training.config import RunConfig
from uge_core.graph.graph import AttributedGraph
from uge_core.training.config import RunConfig

What = Literal["train", "audit", "project"]
STEP = 1e-3
"""Seconds of a step besides what its numbers take."""
# Rules of thumb, seconds per unit of work, on one core of a machine of 2024.
_RULE = {"train": 3e-9, "audit": 1.0}
_NEWEST = 8  # rates of a kind that are looked at
_PAIR = 1.5e-9  # seconds a pair of people and attribute takes in DP


@dataclass(frozen=True)
class Timing:
    """What one pass or audit took.

    Attributes:
        what: train, audit or project.
        graph: its graph's fingerprint.
        kind: device, backbone and methods, with slashes between.
        machine: whose rate it is, as `machine()`.
        work: how much there was to do, see `training_work` and `audit_work`.
        seconds: what it took, as of a machine that does nothing else.
        at: when, seconds since 1970.
    """

    what: What
    graph: str
    kind: str
    machine: str
    work: float
    seconds: float
    at: float


@dataclass(frozen=True)
class Span:
    """How long something will take.

    Attributes:
        low: seconds on a machine that does nothing else.
        high: seconds with what else it does now.
        source: where that is known from, in words.
        known: by measurements on this machine, not by rule of thumb.
    """

    low: float
    high: float
    source: str
    known: bool


def training_work(config: RunConfig, num_nodes: int, num_edges: int) -> float:
    """The numbers that all steps of a run hold, those of its twin too."""
    made = build_options(find("backbones", config.backbone), config.backbone_options, config.backbone)
    held = made.step_floats(num_nodes, 2 * num_edges, config.dim)
    return float((config.epochs + config.warm_epochs) * (2 if config.exposure == "both" else 1) * held)


def audit_work(config: RunConfig, graph: AttributedGraph, attackers: Sequence[str] = DEFAULT_ATTACKERS) -> float:
    """Seconds that the audit of a run takes by rule of thumb, the random embedding's attacks left out."""
    people = graph.num_users or graph.num_nodes
    seconds = people * 1e-4  # rankings
    for attribute in graph.audited:
        embeddings = 1 + (config.exposure == "both" and attribute.name in config.sensitive)
        attacked = min(people, MOST_PEOPLE)
        seconds += embeddings * sum(attack_work(attacked, attribute, attacker) for attacker in attackers)
        seconds += min(people, EXACT_NODES) ** 2 / 2 * _PAIR
    return seconds


def attack_work(people: int, attribute: Attribute, attacker: str) -> float:
    """Seconds that one attack takes by rule of thumb."""
    values = min(int((attribute.sizes > 0).sum()), MANY_VALUES)
    cost: tuple[float, float, float] = find("audit.attackers", attacker).seconds
    least, each, more = cost
    return least + people * (each + more * max(0, values - 2))


def kind(device: str, configs: Sequence[RunConfig]) -> str:
    """Device, backbone and methods of some runs that train together."""
    methods = "+".join(sorted({c.method for c in configs}))
    return f"{'cpu' if device == 'cpu' else 'gpu'}/{configs[0].backbone}/{methods}"


def timed(what: What, graph: str, kind: str, work: float, seconds: float) -> Timing:
    """The rate of something that ended just now."""
    return Timing(what, graph, kind, machine(), work, seconds / max(1.0, load_average() / cores()), time.time())


def span(timings: Sequence[Timing], what: What, work: float, *, graph: str, kind: str) -> Span:
    """How long work of a kind on a graph will take, by the rates of this machine; those of audits have the kind ""."""
    mine = [r for r in timings if r.what == what and r.machine == machine() and r.work > 0]
    of_it = kind.rpartition("/")[0]
    name = "passes" if what == "train" else "audits"
    tiers = (
        ([r for r in mine if r.graph == graph and r.kind == kind], 1.2, f"earlier {name} of this graph, alike"),
        (
            [r for r in mine if r.graph == graph and r.kind.rpartition("/")[0] == of_it],
            1.6,
            f"earlier {name} of this graph",
        ),
        ([r for r in mine if r.kind.rpartition("/")[0] == of_it], 2.5, f"earlier {name} of other graphs here"),
    )
    busy = 1.0 + load_average() / cores()
    for earlier, spread, source in tiers:
        if earlier:
            newest = sorted(earlier, key=lambda r: -r.at)[:_NEWEST]
            each = [r.seconds / r.work for r in newest]
            return Span(work * min(each) / spread**0.5, work * max(each) * spread * busy, source, True)
    usual = work * _RULE[what]
    return Span(usual / 2, usual * 4 * busy, "a rule of thumb, as nothing like it was measured on this machine", False)


def load_average() -> float:
    """Processes that want to run, over the last minute; 0 where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def machine() -> str:
    """Tells this machine's rates from those of a store that was copied from another; names nobody."""
    return hashlib.sha256(f"{platform.node()}/{platform.machine()}/{cores()}".encode()).hexdigest()[:12]


def between(low: float, high: float) -> str:
    """A range of seconds in words: "6 to 9 min"."""
    first, last = duration(low), duration(high)
    if first == last:
        return first
    unit = last.rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}')} to {last}"


def duration(seconds: float) -> str:
    """Seconds in words, as exact as an estimate is."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
