"""Negative edges: a shared block of random nodes, or a list for each edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from uge_core.errors import ConfigError
from uge_core.training.edge_loss.pairs import (
    EMPTY_BLOCK,
    Block,
    Cells,
    ListedPairs,
    Negatives,
    Pairs,
    Passes,
    Placed,
    to_device,
)


def strangers(kind: str, pairs: Pairs, passes: Passes, block_size: int, num_negatives: int) -> Negatives:
    """The second half of the cross-entropy, "shared" or "listed"."""
    return Listed(pairs, num_negatives, passes) if kind == "listed" else SharedBlock(pairs, block_size)


class SharedBlock:
    """One block of random nodes a step and side, scored against every source."""

    def __init__(self, pairs: Pairs, block_size: int) -> None:
        self.pairs, self.block_size = pairs, block_size
        self.fixed: list[Placed] | None = None

    def blocks(self, epoch: int) -> Sequence[Block | Placed]:
        """See `Negatives.blocks`."""
        return self._drawn(epoch) if self.fixed is None else self.fixed

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`; a block has no more pairs than its size of the nodes with most edges."""
        start, _ = self.pairs.rows
        most = []
        for _, low, high in self.pairs.sides:
            size = min(self.block_size, high - low)
            own = size if self.pairs.num_users is None else 0
            most.append(int(np.sort(np.diff(start)[low:high])[-size:].sum()) + own)

        def placed(epoch: int) -> list[Placed]:
            sides = zip(self.pairs.sides, self._drawn(epoch), most, strict=True)
            return [Placed.of(block, sources.start, m) for (sources, _, _), block, m in sides]

        fixed = self.fixed = [block.to(device) for block in placed(1)]

        def load(epoch: int) -> None:
            for old, new in zip(fixed, placed(epoch), strict=True):
                for place, fresh in zip(old.parts, new.parts, strict=True):
                    place.copy_(to_device(fresh, device), non_blocking=True)

        return load

    def _drawn(self, epoch: int) -> list[Block]:
        rng = self.pairs.rng(epoch)
        return [self._block(rng, low, high) for _, low, high in self.pairs.sides]

    def _block(self, rng: np.random.Generator, low: int, high: int) -> Block:
        start, neighbour = self.pairs.rows
        nodes = np.sort(rng.choice(high - low, min(self.block_size, high - low), replace=False)) + low
        linked = np.concatenate([neighbour[start[b] : start[b + 1]] for b in nodes])
        column = np.repeat(np.arange(len(nodes)), start[nodes + 1] - start[nodes])
        if self.pairs.num_users is None:
            linked, column = np.append(linked, nodes), np.append(column, np.arange(len(nodes)))
        return Block(nodes, linked, column)

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """Nothing: blocks stand for all."""


class Listed:
    """The paper's recipe: strangers drawn once per observed pair and kept for all epochs; they carry its own weight."""

    def __init__(self, pairs: Pairs, num_negatives: int, passes: Passes) -> None:
        self.passes = passes
        rng = np.random.default_rng([pairs.seed, 5])
        start, neighbour = pairs.rows
        keys = pairs.sources * pairs.num_nodes + neighbour
        source, target, weight = [], [], []
        for sources, low, high in pairs.sides:
            span = slice(start[sources.start], start[sources.stop])
            u = np.repeat(pairs.sources[span], num_negatives)
            v = rng.integers(low, high, len(u))
            for _ in range(64):
                key = u * pairs.num_nodes + v
                at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
                bad = np.nonzero((keys[at] == key) | (u == v))[0]
                if not len(bad):
                    break
                v[bad] = rng.integers(low, high, len(bad))
            source.append(np.delete(u, bad))
            target.append(np.delete(v, bad))
            if pairs.entry_weights is not None:
                weight.append(np.delete(np.repeat(pairs.entry_weights[span], num_negatives), bad))
        if not sum(map(len, source)):
            raise ConfigError(
                "negatives = 'listed': every node is linked to every other, so there is no stranger to list"
            )
        self.nobody = [EMPTY_BLOCK for _ in pairs.sides]
        own = np.concatenate(weight) if weight else None
        self.listed = ListedPairs(
            torch.as_tensor(np.concatenate(source), device=passes.device),
            torch.as_tensor(np.concatenate(target), device=passes.device),
            None if own is None else torch.as_tensor(own / own.mean(), device=passes.device),
            pairs.num_nodes,
        )

    def blocks(self, epoch: int) -> Sequence[Block]:
        """None: the list stands for all."""
        return self.nobody

    def stage(self, device: torch.device) -> Callable[[int], None]:
        """See `EdgeLoss.stage`: nothing is drawn."""
        return lambda epoch: None

    def add(self, z: Tensor, cells: list[Cells], want_loss: bool, loss: Tensor, gradient: Tensor) -> None:
        """See `Negatives.add`."""
        self.passes.repel(z, cells, self.listed, want_loss, loss, gradient)
