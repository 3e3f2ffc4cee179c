"""A graph as plain arrays and a record of JSON, and the graph out of these: what a kept graph's files hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.graph.graph import Attribute, AttributedGraph, Column, Defaults, Message, PlantedTruth

Arrays = dict[str, npt.NDArray[Any]]
_PIECE = 2**20
_INTEGERS = (np.int8, np.int16, np.int32)


def apart(graph: AttributedGraph) -> tuple[dict[str, Any], Arrays, list[str] | None] | None:
    """A graph as a record, arrays by name, and the ids; None where it is not made of what JSON and arrays hold.

    Whole numbers are in the smallest type that holds them.
    """
    ids = None if graph.node_ids is None else graph.node_ids.tolist()
    if graph.base is not None or (ids is not None and set(map(type, ids)) - {str}):
        return None
    arrays: Arrays = {"edges": _small(graph.edges)}
    for i, a in enumerate(graph.attributes):
        arrays[f"codes_{i}"] = _small(a.codes)
    for name in ("features", "edge_weights", "directions"):
        if (array := getattr(graph, name)) is not None:
            arrays[name] = array
    truth = graph.truth
    if truth is not None:
        arrays |= {"bias_free": _small(truth.bias_free), "group": _small(truth.group)}
        arrays |= {"ratio": truth.ratio, "bias_free_ratio": truth.bias_free_ratio}
    record = {
        "name": graph.name,
        "num_nodes": graph.num_nodes,
        "num_users": graph.num_users,
        "attributes": [
            {
                "name": a.name,
                "labels": a.labels,
                "side": a.side,
                "aliases": a.aliases,
                "unknown_label": a.unknown_label,
                "ordered": a.ordered,
            }
            for a in graph.attributes
        ],
        "feature_names": graph.feature_names,
        "layout": graph.layout,
        "columns": [asdict(c) for c in graph.columns],
        "messages": [asdict(m) for m in graph.messages],
        "defaults": asdict(graph.defaults),
        "sensitive": None if truth is None else truth.sensitive,
        "content": graph.content,
    }
    return record, arrays, ids


def together(
    record: Mapping[str, Any], array: Callable[[str], npt.NDArray[Any] | None], ids: list[str] | None
) -> AttributedGraph:
    """The graph that was taken apart.

    Args:
        record: its record.
        array: gives an array by its name, or None where the graph has none.
        ids: of the nodes.

    Raises:
        GraphError: the arrays contradict each other.
        LookupError, TypeError, ValueError: the record is none that `apart` made, or of another graph.
    """
    attributes = tuple(
        Attribute(
            a["name"],
            _whole(array(f"codes_{i}")),
            tuple(a["labels"]),
            a["side"],
            tuple(a["aliases"]),
            a["unknown_label"],
            a["ordered"],
        )
        for i, a in enumerate(record["attributes"])
    )
    truth = None
    if record["sensitive"] is not None:
        truth = PlantedTruth(
            _whole(array("bias_free")),
            tuple(record["sensitive"]),
            _whole(array("group")),
            _there(array("ratio")),
            _there(array("bias_free_ratio")),
        )
    names = None
    if ids is not None:
        names = np.empty(len(ids), dtype=object)
        names[:] = ids
    defaults = record["defaults"]
    graph = AttributedGraph(
        name=record["name"],
        num_nodes=record["num_nodes"],
        edges=_whole(array("edges")),
        attributes=attributes,
        node_ids=names,
        num_users=record["num_users"],
        features=array("features"),
        feature_names=tuple(record["feature_names"]),
        layout=record["layout"],
        columns=tuple(Column(**c) for c in record["columns"]),
        messages=tuple(Message(**{**m, "examples": tuple(m["examples"])}) for m in record["messages"]),
        defaults=Defaults(**{**defaults, "sensitive": tuple(defaults["sensitive"])}),
        truth=truth,
        edge_weights=array("edge_weights"),
        directions=array("directions"),
    )
    if graph.content != record["content"]:
        raise ValueError("the arrays are those of another graph")
    return graph


def _small(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers in the smallest type that holds them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    fits = (kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return array.astype(next(fits, np.int64), copy=False)


def _whole(array: npt.NDArray[Any] | None) -> npt.NDArray[np.int64]:
    """Whole numbers in 64 bits, as graphs have them: products of two node numbers do not fit 32."""
    small = _there(array)
    out = np.empty(small.shape, dtype=np.int64)
    for row, part in zip(np.atleast_2d(out), np.atleast_2d(small), strict=True):
        for first in range(0, len(row), _PIECE):  # of a file that is mapped no more lies in memory at once
            row[first : first + _PIECE] = part[first : first + _PIECE]
    return out


def _there(array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    if array is None:
        raise ValueError("an array is missing")
    return array
