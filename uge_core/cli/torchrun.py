"""`uge train` and `uge sweep` as several processes that torchrun has started; torch's own launcher, with its options."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from uge_core import machine
from uge_core.cli.arguments import DONE, INTERRUPTED, USER_ERROR
from uge_core.cli.loading import load_graph
from uge_core.cli.printing import remark
from uge_core.errors import ConfigError, ProcessLost, UgeError
from uge_core.ranks import ALONE, Ranks

if TYPE_CHECKING:
    from types import FrameType

    from uge_core.graph.graph import AttributedGraph
    from uge_core.training.ranks import Several

Lead = Callable[["AttributedGraph", dict[str, Any], Ranks], int]
"""What a command does with its graph, with how to load that again, and with those who train along; its exit code."""

_ECHO = 2.0  # seconds in which a second signal is the same one, passed on by torchrun
_PACKAGES = ("torch", "numpy", "numba")


def with_ranks(args: argparse.Namespace, lead: Lead) -> int:
    """Loads the graph and does what the command is for; of several processes rank 0 does, and the others train along.

    Args:
        args: of the command, with data, attributes and store.
        lead: what the command does.

    Returns:
        The exit code.

    Raises:
        UgeError: on rank 0; others say what is theirs alone, such as a file that is not there.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return lead(*load_graph(args.data, args.attributes, args.store), ALONE)
    from uge_core.training.ranks import formed

    ranks = formed()
    ranks.share_cores()
    try:
        with _signals(ranks):
            return _lead(args, lead, ranks) if ranks.rank == 0 else _follow(args, ranks)
    finally:
        ranks.close()


def _lead(args: argparse.Namespace, lead: Lead, ranks: Several) -> int:
    graph, source = load_graph(args.data, args.attributes, args.store)
    ranks.agree(lambda: _about(args, graph))
    return lead(graph, source, ranks)


def _follow(args: argparse.Namespace, ranks: Several) -> int:
    from uge_core.datasets import load
    from uge_core.runs.follow import follow

    try:
        graph = load(args.data, attributes=args.attributes, store=args.store)
    except UgeError as error:
        return _said(ranks, error)
    try:
        ranks.agree(lambda: _about(args, graph))
        machine.keep_freed_memory()
        follow(graph, ranks)
    except ConfigError:  # rank 0 says it
        return USER_ERROR
    except UgeError as error:
        return _said(ranks, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


def _said(ranks: Ranks, error: UgeError) -> int:
    """Says an error of this rank's own, at once, as torchrun's SIGTERM may be on its way."""
    remark(f"rank {ranks.rank}: {error}")
    return USER_ERROR


def _about(args: argparse.Namespace, graph: AttributedGraph) -> Mapping[str, str]:
    """What all ranks must have alike."""
    wishes = {k: v for k, v in sorted(vars(args).items()) if k not in ("command", "store", "data", "json")}
    return {
        "the graph": graph.fingerprint,
        "the command": ", ".join(f"{k}={v}" for k, v in wishes.items()),
        "the code": machine.code_digest(),
        "packages": ", ".join(f"{name} {machine.version(name)}" for name in _PACKAGES),
    }


@contextmanager
def _signals(ranks: Several) -> Iterator[None]:
    """Ctrl-C and torchrun's SIGTERM each end this process once, so that the run can be marked.

    A Ctrl-C comes from the terminal and again from torchrun. A SIGTERM comes when another process has ended, which this
    one may know already; once the others are let go it knows of nobody.
    """
    came = -_ECHO

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        before, came = came, time.monotonic()
        if came - before < _ECHO:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if ranks.lost and not ranks.dismissed:
            return
        ranks.lose()
        raise ProcessLost(
            f"torchrun has ended this training of {ranks.size} processes, as it does when one of them ends; what was "
            "trained up to the last checkpoint is kept: run the same command again, under torchrun or not, or "
            "`uge runs resume RUN_ID`, and it goes on from there"
        )

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
