"""Who computes which rows of nodes, where several processes (ranks) train one embedding.

Sums are cut into blocks whatever the number of processes: tasks of the edge loss, 1,024 rows of a product, 2,048 rows of
a kernel gap. A rank takes whole blocks, and blocks' sums are added in the blocks' order, wherever they were made. So the
bits are those of one process.

`Ranks` itself is the one process that has all rows: it cuts, sends and waits for nothing. `training/ranks.py` has the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class Ranks:
    """One process by itself, and what the parts of a training ask of several.

    Attributes:
        rank: this process's number; 0 leads.
        size: how many there are.
        here: how many of them this machine has.
    """

    rank: int = 0
    size: int = 1
    here: int = 1

    def share(self, count: int) -> range:
        """Which of `count` blocks are this rank's: whole ones, one after another; rank 0 has the first."""
        first, last = (-(-count * r // self.size) for r in (self.rank, self.rank + 1))
        return range(first, last)

    def cut(self, slopes: Sequence[int], multiple: int) -> Ranks:
        """These ranks with the rows of a graph shared out.

        Args:
            slopes: (size + 1,) where each rank's share of the edge loss begins, and N.
            multiple: what encoders' rows are cut at multiples of.
        """
        return self

    def span(self, num_nodes: int) -> tuple[int, int]:
        """The first of this rank's rows and the one after the last."""
        return 0, num_nodes

    def slopes(self, num_nodes: int) -> tuple[int, int]:
        """The rows whose gradient of the loss this rank computes: first, and one after the last."""
        return 0, num_nodes

    def zeros(self, z: Tensor) -> Tensor:
        """As large as z (..., N, w), and 0 where this rank computes a gradient; of no use elsewhere."""
        return z.new_zeros(z.shape)

    def scaled(self, gradient: Tensor, factor: Tensor) -> Tensor:
        """Gradient times factor where this rank computes one; of no use elsewhere."""
        return gradient * factor

    def own(self, rows: Tensor) -> Tensor:
        """(..., n, w) this rank's rows of `rows` (..., N, w), a copy of their own where that is not all."""
        return rows

    def complete(self, own: Tensor) -> Tensor:
        """(..., N, w) all ranks' rows, each rank having given its own (..., n, w); without a gradient."""
        return own

    def whole(self, own: Tensor) -> Tensor:
        """As `complete`, with a gradient: each rank has that of the rows of `slopes`, and gets that of its own rows."""
        return own

    def collected(self, own: Tensor) -> Tensor:
        """As `complete`, for rank 0 alone; others get what is of no use."""
        return own

    def pooled(self, parts: Sequence[Tensor]) -> None:
        """Gives every rank all `parts`, each of which the rank that `share` names has filled."""

    def added(self, parts: Sequence[Tensor], like: Tensor) -> Tensor:
        """The sum of all ranks' parts, in the parts' order; the first rank has the first part.

        Args:
            parts: this rank's; changed.
            like: a tensor of the sum's shape and kind.
        """
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def told(self, word: bool, *, slow: bool = False) -> bool:
        """What rank 0 says; `slow` where it may have been busy with a disk."""
        return word

    def dealt(self, held: Any) -> Any:
        """What rank 0's checkpoint holds, for every rank with its own rows of tables."""
        return held

    def pace(self, seconds: float) -> None:
        """Notes how long a step took, by which it is told how long others may keep one waiting."""

    def agree(self, about: Callable[[], Mapping[str, str]]) -> None:
        """Makes sure that all ranks have what `about` names, such as the graph, alike."""

    def announce(self, task: dict[str, Any]) -> None:
        """Tells the other ranks what is trained next."""

    def dismiss(self) -> None:
        """Tells the other ranks that nothing more is to be trained."""


ALONE = Ranks()
