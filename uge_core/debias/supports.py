"""What a method serves, asked of its code: which slots it fills and what it refuses, on toy graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from uge_core import registry
from uge_core.arrays import IntArray
from uge_core.debias.base import Method
from uge_core.debias.bias_free import MethodInputs
from uge_core.debias.heads.base import NoHead
from uge_core.debias.penalties.base import Ahead, NoPenalty
from uge_core.debias.postprocess.base import Keep
from uge_core.errors import ConfigError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN, Attribute, AttributedGraph
from uge_core.graph.values import resolve_values
from uge_core.plugin import Info, describe

_PEOPLE = 12


def describe_method(cls: type[Method]) -> Info:
    """Source, formula, what it supports and what it cannot do."""
    return describe(cls, supports(cls))


def supports(cls: type[Method]) -> tuple[tuple[str, str], ...]:
    """What `cls` fills and serves with its default options, each with words."""
    return tuple(_supports(cls))


def _supports(cls: type[Method]) -> Iterator[tuple[str, str]]:
    method, toys = cls(), _toys()
    yield "Works through", "; ".join(_slots(method, toys["people"])) or "nothing"
    yield "Backbones", "all"
    for kind, known in toys.items():
        refused = _refused(method, known)
        served = "yes, its steps follow directions" if kind == "directed" and cls.steps_follow else "yes"
        if len(set(refused.values())) == 1:
            (reason,) = set(refused.values())
            yield kind.capitalize(), f"refused: {reason}" if reason else served
        else:
            yield kind.capitalize(), "; ".join(f"with {loss} {why or served}" for loss, why in refused.items())
    if cls.reads_attributes:
        yield "Attributes read", "one, or several jointly; a twin without the tested people's values serves `unseen`"
    else:
        yield "Attributes read", "none"
    yield "Lambda", f"{cls.default_lam:g} by default; paths, also warm ones" if cls.uses_lambda else "none"
    lost = method.dimensions(toys["people"])
    if lost:
        yield "Takes away", "a dimension for each value but one of an attribute; refused where none would be left"
    yield "Trains", "in a pass of its own" if cls.widens else "in one pass with other methods"
    yield "Steps on a GPU", "recorded" if _recorded(method, toys["people"]) else "as written"
    yield "Re-encoded by What-if", "yes, with an encoder" if _plain(method, toys["people"]) else "no"


def _slots(method: Method, known: MethodInputs) -> Iterator[str]:
    # estimating a table may compile kernels, which a page must not
    if overridden(method, "cells"):
        yield "weights or offsets of pairs of groups"
    if not isinstance(method.penalty(known), NoPenalty):
        yield "a penalty"
    edges = method.edges(known)
    if edges.in_loss(1) is not None:
        yield "what each edge counts in the loss"
    if edges.in_messages(1) is not None:
        weighing = [n for n in registry.names("backbones") if registry.find("backbones", n).messages == "weighted"]
        yield f"messages of {', '.join(weighing)}"
    if method.walks(known) is not None:
        walking = [n for n in registry.names("backbones") if registry.find("backbones", n)().plan() is not None]
        yield f"steps of walks of {', '.join(walking)}"
    if not isinstance(_head(method, known), NoHead):
        yield "a head between encoder and loss"
    if not isinstance(method.postprocess(known), Keep):
        yield "a change of the finished embedding"


def overridden(method: Method, slot: str) -> bool:
    """Whether a method fills a slot with something of its own."""
    return getattr(type(method), slot) is not getattr(Method, slot)


def _head(method: Method, known: MethodInputs) -> Any:
    return method.head(known, method.penalty(known))


def _recorded(method: Method, known: MethodInputs) -> bool:
    return isinstance(method.penalty(known), Ahead) and _fixed(method, known)


def _fixed(method: Method, known: MethodInputs) -> bool:
    edges = method.edges(known)
    same = all(a is b for a, b in ((f(1), f(1000)) for f in (edges.in_loss, edges.in_messages)))
    return same and isinstance(_head(method, known), NoHead)


def _plain(method: Method, known: MethodInputs) -> bool:
    """The exported embedding is what the encoder gives on the graph as it is."""
    own = method.edges(known).in_kept() is not None
    return not own and isinstance(_head(method, known), NoHead) and isinstance(method.postprocess(known), Keep)


def _refused(method: Method, known: MethodInputs) -> dict[str, str]:
    """By loss why this method refuses a graph; empty where it does not."""
    refusals = {}
    for loss in dict.fromkeys(registry.find("backbones", n).loss for n in registry.names("backbones")):
        try:
            method.check(known, loss)
        except ConfigError as error:
            refusals[loss] = str(error).removeprefix(f"{method.name}: ")
        else:
            refusals[loss] = ""
    return refusals


@cache
def _toys() -> Mapping[str, MethodInputs]:
    """A ring of people with chords in each form a graph may have; of a bipartite one the second half are items."""
    here, half = np.arange(_PEOPLE), _PEOPLE // 2
    ends = [(here, (here + step) % _PEOPLE) for step in (1, 3)]
    edges = np.unique(np.sort(np.concatenate([np.stack(pair) for pair in ends], axis=1), axis=0), axis=1)
    across = np.unique(np.stack([here % half, half + here * 5 % half]), axis=1)
    count = np.arange(edges.shape[1])
    return {
        "people": _toy(edges),
        "bipartite": _toy(across, num_users=half),
        "directed": _toy(edges, directions=(count % 3 - 1).astype(np.int8)),
        "weighted": _toy(edges, edge_weights=(1 + count % 3).astype(np.float32)),
        "missing values": _toy(edges, missing=3),
    }


def _toy(edges: IntArray, *, missing: int = 0, **form: Any) -> MethodInputs:
    """Two attributes, of which the first `missing` people have none; items have neither."""
    people, side = form.get("num_users", _PEOPLE), "users" if "num_users" in form else "nodes"
    codes = np.full((2, _PEOPLE), NOT_APPLICABLE)
    codes[:, :people] = np.arange(people) % 2, np.arange(people) // 2 % 3
    codes[:, :missing] = UNKNOWN
    labels = ("a", "b", "c")
    attributes = tuple(Attribute(n, c, labels[: c.max() + 1], side) for n, c in zip("gh", codes, strict=True))  # type: ignore[arg-type]
    graph = AttributedGraph("toy", _PEOPLE, edges, attributes, **form)
    rng = np.random.default_rng(0)
    values = tuple(resolve_values(a, graph, edges, unknown="exclude", rng=rng) for a in attributes)
    return MethodInputs(graph, edges, values, (), graph.edge_weights, directions=graph.directions)
