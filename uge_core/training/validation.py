"""What is looked at while training goes on: nothing, or a validation share of the links.

The look is cheap: at most 4,096 nodes rank their held-out links, and leakage is that of a least-squares
classifier with a closed form. It is fitted and tried on nodes that the audit's probe trains on; neither
the test links nor the probe's test nodes are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor, no_grad

from uge_core.arrays import FloatArray, IntArray
from uge_core.audit.ndcg import ndcg_per_target, rank_candidates
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.scores import scorer
from uge_core.graph.split import LinkSplit, RankingTask, probe_split, ranking_task
from uge_core.training.config import RunConfig

LOOKS = 40
_TARGETS = 4096
_CLASSES = 100
_FEWEST_OF_CLASS = 10  # nodes of a class in each half


class Validation(Protocol):
    """Decides which epoch of each member is kept."""

    def __call__(self, epoch: int, encode: Callable[[], Tensor]) -> None:
        """Looks at the members after `epoch`; `encode` gives their embeddings (K, N, d)."""

    def result(self, last: Tensor, epoch: int) -> tuple[list[Tensor], list[int]]:
        """The embedding kept of each member, and its epoch."""

    def record(self, member: int) -> dict[str, Any] | None:
        """What was seen of a member: lists `epoch` and `ndcg_at_10`, and `balanced_accuracy` by attribute."""

    def state(self) -> tuple[Any, dict[str, Tensor]]:
        """What a checkpoint keeps of it: something fit for JSON, and tensors by name."""

    def restore(self, record: Any, tensors: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""


class LastEpoch:
    """Keeps nothing: the last epoch counts."""

    def __call__(self, epoch: int, encode: Callable[[], Tensor]) -> None:
        """Does nothing."""

    def result(self, last: Tensor, epoch: int) -> tuple[list[Tensor], list[int]]:
        """The last embeddings."""
        return list(last), [epoch] * len(last)

    def record(self, member: int) -> None:
        """Nothing."""

    def state(self) -> tuple[None, dict[str, Tensor]]:
        """Nothing."""
        return None, {}

    def restore(self, record: None, tensors: dict[str, Tensor]) -> None:
        """Nothing."""


class BestEpoch:
    """Keeps each member's embedding at its best NDCG@10 on validation links, looked at 40 times."""

    def __init__(
        self, graph: AttributedGraph, split: LinkSplit, config: RunConfig, members: int, first: int, last: int
    ) -> None:
        # test edges must not shape the choice, not even by being kept out of the strangers
        seen = np.concatenate([split.train, split.validation], axis=1)
        known = replace(graph, edges=seen, edge_weights=None, directions=None)
        self.task = _at_most(ranking_task(known, split.validation, seed=config.split_seed), config.split_seed)
        self.seed, self.first, self.last = config.split_seed, first, last
        self.scorer = scorer(config.score)
        self.every = max(1, (last - first) // LOOKS)
        self.probes = {
            a.name: probe
            for a in graph.audited
            if (probe := QuickProbe.of(*_halves(a, config.unknown, config.split_seed))) is not None
        }
        self.best: list[tuple[float, int, Tensor] | None] = [None] * members
        self.seen: list[dict[str, Any]] = [
            {"epoch": [], "ndcg_at_10": [], "balanced_accuracy": {name: [] for name in self.probes}}
            for _ in range(members)
        ]

    def __call__(self, epoch: int, encode: Callable[[], Tensor]) -> None:
        """Compares this epoch with the best so far."""
        if (epoch - self.first) % self.every and epoch != self.last:
            return
        with no_grad():
            z = encode()
        for k, zk in enumerate(z):
            rows = zk.cpu().numpy()
            ranking = rank_candidates(self.scorer.factors(rows), self.task, seed=self.seed)
            value = float(np.nanmean(ndcg_per_target(ranking, np.ones(len(ranking.rank)), len(self.task.targets))))
            self.seen[k]["epoch"].append(epoch)
            self.seen[k]["ndcg_at_10"].append(value)
            for name, probe in self.probes.items():
                self.seen[k]["balanced_accuracy"][name].append(probe.balanced_accuracy(rows))
            best = self.best[k]
            if best is None or value > best[0]:
                self.best[k] = (value, epoch, zk.clone())

    def result(self, last: Tensor, epoch: int) -> tuple[list[Tensor], list[int]]:
        """Each member's best."""
        best = [b for b in self.best if b is not None]
        return [z for _, _, z in best], [epoch for _, epoch, _ in best]

    def record(self, member: int) -> dict[str, Any]:
        """See `Validation.record`."""
        return self.seen[member]

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The best so far of each member, and what was seen."""
        best = {k: b for k, b in enumerate(self.best) if b is not None}
        return (
            {"seen": self.seen, "best": [[k, value, epoch] for k, (value, epoch, _) in best.items()]},
            {str(k): z for k, (_, _, z) in best.items()},
        )

    def restore(self, record: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """See `Validation.restore`."""
        self.seen = record["seen"]
        for k, value, epoch in record["best"]:
            self.best[k] = (value, epoch, tensors[str(k)])


def _at_most(task: RankingTask, seed: int) -> RankingTask:
    """At most 4,096 of a task's lists."""
    chosen = np.sort(np.random.default_rng([seed, 21]).permutation(len(task.targets))[:_TARGETS])
    return RankingTask(task.targets[chosen], task.candidates[chosen], task.relevant[chosen])


def _halves(attribute: Any, unknown: str, seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Two halves of the nodes an audit's probe trains on, and all nodes' classes."""
    probe = probe_split(attribute, unknown=unknown, seed=seed)
    order = np.random.default_rng([seed, 22]).permutation(probe.train)
    return np.sort(order[::2]), np.sort(order[1::2]), probe.classes


class QuickProbe:
    r"""Least squares on class indicators with balanced classes: the direction of linear leakage in a millisecond.

    W = (X^T V X + 1e-3 n I)^-1 X^T V Y with V_ii = 1 / (K n_{y_i}), X standardised with a constant column; the class
    with the largest output is predicted. It is a cheap sign of leakage while training runs, no audit figure.
    """

    def __init__(self, fit: IntArray, look: IntArray, classes: IntArray, large: Sequence[int]) -> None:
        self.fit, self.look = fit, look
        position = np.full(int(classes.max()) + 1, -1)
        position[list(large)] = np.arange(len(large))
        self.expected, self.true = position[classes[fit]], position[classes[look]]
        self.num = len(large)

    @classmethod
    def of(cls, fit: IntArray, look: IntArray, classes: IntArray) -> QuickProbe | None:
        """On classes with at least ten nodes in both halves, at most a hundred; None where fewer than two are left."""
        num = int(classes.max(initial=0)) + 1
        sizes = [np.bincount(classes[half], minlength=num) for half in (fit, look)]
        enough = np.nonzero(np.minimum(*sizes) >= _FEWEST_OF_CLASS)[0]
        large = enough[np.argsort(-sizes[0][enough], kind="stable")][:_CLASSES]
        if len(large) < 2:
            return None
        inside = np.isin(classes, large)
        return cls(fit[inside[fit]], look[inside[look]], classes, sorted(large.tolist()))

    def balanced_accuracy(self, z: FloatArray) -> float:
        """Mean share of right answers per class, on the half that was not fitted; 1 / K is chance."""
        x, tried = self._inputs(z, self.fit), self._inputs(z, self.look)
        weight = 1.0 / (self.num * np.bincount(self.expected, minlength=self.num)[self.expected])
        left = (x * weight[:, None]).T @ x + 1e-3 * np.eye(x.shape[1])
        right = np.stack([np.bincount(self.expected, weight * column, self.num) for column in x.T])
        guess = (tried @ np.linalg.solve(left, right)).argmax(axis=1)
        hits = np.bincount(self.true, guess == self.true, self.num) / np.bincount(self.true, minlength=self.num)
        return float(hits.mean())

    def _inputs(self, z: FloatArray, nodes: IntArray) -> npt.NDArray[np.float64]:
        some = z[self.fit].astype(np.float64)
        mean, spread = some.mean(axis=0), some.std(axis=0)
        scaled = (z[nodes] - mean) / np.where(spread > 0, spread, 1.0)
        return np.concatenate([scaled, np.ones((len(nodes), 1))], axis=1)
