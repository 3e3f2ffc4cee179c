"""What several processes train, as digests: `python -m torch.distributed.run ... tests/trained_by_ranks.py OUT [CASE ...]`.

All cases where none is named. `trained` gives the same for one process. With `hang` in place of OUT rank 1 stops in the middle, and the others say what
they make of it. With `measure PEOPLE DIM BACKBONE` rank 0 says what a training took.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from strategies import attribute

from uge_core.errors import ProcessLost
from uge_core.graph.graph import AttributedGraph, simple_edges
from uge_core.graph.split import split_links
from uge_core.machine import peak_memory
from uge_core.ranks import ALONE, Ranks
from uge_core.registry import names
from uge_core.training.config import RunConfig
from uge_core.training.fit import Fitted, fit


def people(num=6500, seed=0, **extra):
    """Enough for several blocks of every kind; a few have many links."""
    rng = np.random.default_rng(seed)
    city, gender = rng.integers(0, 4, num), rng.integers(0, 2, num)
    source, target = (num * rng.random((2, 30_000)) ** 1.5).astype(np.int64)
    keep = rng.random(len(source)) < np.where(city[source] == city[target], 0.9, 0.2)
    edges, _, _ = simple_edges(source[keep], target[keep], num)
    if extra.pop("directed", False):
        extra["edge_weights"] = rng.uniform(0.5, 2.0, edges.shape[1]).astype(np.float32)
        extra["directions"] = rng.integers(-1, 2, edges.shape[1]).astype(np.int8)
    if width := extra.pop("width", 0):
        extra["features"] = rng.normal(size=(num, width)).astype(np.float32)
    return AttributedGraph("people", num, edges, (attribute("city", city), attribute("gender", gender)), **extra)


def shop(users=3000, items=1500, seed=0):
    rng = np.random.default_rng(seed)
    gender = rng.integers(0, 2, users)
    source, target = rng.integers(0, users, 15_000), users + rng.integers(0, items, 15_000)
    edges, _, _ = simple_edges(source, target, users + items)
    codes = np.concatenate([gender, np.full(items, -2)])
    city = attribute("city", codes, side="users", num_values=2)
    return AttributedGraph("shop", users + items, edges, (city,), num_users=users)


GRAPHS = {
    "people": people,
    "features": lambda: people(width=10),
    "directed": lambda: people(directed=True),
    "shop": shop,
    "few": lambda: people(num=150),
    "some": lambda: people(num=3000),
}
REFUSED = ("cfc", "fairgnn", "monet")
OTHERS = [m for m in names("debias.methods") if m not in (*REFUSED, "none", "uge-c", "uge-o", "uge-ok")]


def _path(graph, backbone, method, *lams, **more):
    """A lambda path with its seeds, which trains in one pass."""
    return [config(graph, backbone, method, lam=lam, seed=seed, **more) for lam in lams for seed in (0, 1)]


def config(graph, backbone="node2vec", method="none", **more):
    sensitive = () if method == "none" else ("city",)
    return RunConfig.resolve(
        graph, sensitive=sensitive, backbone=backbone, method=method, **{"epochs": 6, "exposure": "seen", **more}
    )


# By name: a graph, and its configs, which train together.
CASES = {
    f"{backbone}, {method}": ("people", lambda g, b=backbone, m=method: [config(g, b, m)])
    for backbone in ("node2vec", "gcn")
    for method in ("none", "uge-c", "uge-o", "uge-ok")
} | {
    "a path, seeds and twins": ("people", lambda g: _path(g, "node2vec", "uge-ok", 0.1, 1.0, exposure="both")),
    "a path of gcn": ("features", lambda g: _path(g, "gcn", "uge-c", 0.1, 1.0)),
    "odd width": ("people", lambda g: [config(g, options={"dim": 7}), config(g, seed=3, options={"dim": 7})]),
    "warm": (
        "people",
        lambda g: [config(g, "gcn", "uge-ok", lam=lam, warm_from=0.5, warm_epochs=3) for lam in (0.5, 1.5)],
    ),
    "validated": ("people", lambda g: [config(g, "gcn", "uge-ok", validation=0.05)]),
    "sgc": ("people", lambda g: [config(g, "sgc", "uge-ork")]),
    "directed, weighted": ("directed", lambda g: [config(g, "gcn", "uge-c")]),
    "messages weighed": ("directed", lambda g: [config(g, "gcn", "uge-g")]),
    "scored by distance": ("people", lambda g: [config(g, "node2vec", "cne")]),
    "first order": ("people", lambda g: [config(g, "line", "uge-ok", options={"order": "1"})]),
    "people and items": ("shop", lambda g: [config(g, "node2vec", "uge-ok"), config(g, "node2vec", "uge-c")]),
    "items by gcn": ("shop", lambda g: [config(g, "gcn", "uge-ok")]),
    "fewer than a block": ("few", lambda g: [config(g, "gcn", "uge-ok")]),
    "few": ("few", lambda g: [config(g, "node2vec", "uge-ok")]),
}


CASES |= {
    f"{backbone}, {method}": ("some", lambda g, b=backbone, m=method: [config(g, b, m, epochs=3)])
    for backbone in ("node2vec", "gcn")
    for method in OTHERS
}


def digests(fitted: list[Fitted]) -> list[str]:
    """Of all that a training gives but for what it took."""

    def one(f: Fitted) -> str:
        arrays = [f.embedding, *([] if f.twin is None else [f.twin]), *(f.parameters[n] for n in sorted(f.parameters))]
        rest = json.dumps([f.history, f.best_epoch, sorted(f.parameters), f.diagnostics["validation"]])
        return hashlib.sha256(b"".join(a.tobytes() for a in arrays) + rest.encode()).hexdigest()

    return [one(f) for f in fitted]


def trained(cases: Iterable[str], ranks: Ranks = ALONE) -> Iterator[tuple[str, list[str]]]:
    """Each of these cases with the digests of its runs, on rank 0."""
    graphs = {name: make() for name, make in GRAPHS.items()}
    for name in cases:
        graph, configs = CASES[name]
        g = graphs[graph]
        chosen = configs(g)
        share = chosen[0].validation
        split = split_links(g, validation_share=share) if share else split_links(g)
        yield name, digests(fit(chosen, g, split, device="cpu", ranks=ranks))


def hang() -> None:
    """Rank 1 stops by itself after three epochs."""
    from uge_core.training.ranks import formed

    ranks = formed(least=2.0)
    graph = people(num=500)

    def stop(progress) -> None:
        if ranks.rank == 1 and progress.epoch == 3:
            os.kill(os.getpid(), signal.SIGSTOP)

    try:
        fit([config(graph, epochs=10_000)], graph, split_links(graph), device="cpu", on_epoch=stop, ranks=ranks)
    except ProcessLost as error:
        print(f"rank {ranks.rank}: {error}", flush=True)
        sys.exit(3)


def measure(num: int, dim: int, backbone: str) -> None:
    """Peak memory of each rank, and bytes that each has sent at a step, of a graph with 14 edges a person."""
    from uge_core.training.ranks import formed

    ranks = formed()
    rng = np.random.default_rng(0)
    edges, _, _ = simple_edges(*rng.integers(0, num, (2, 14 * num)), num)
    graph = AttributedGraph("measured", num, edges, ())
    split, sent = split_links(graph), []
    gc.collect()
    peak_memory(reset=True)
    fit(
        [config(graph, backbone, epochs=4, options={"dim": dim})],
        graph,
        split,
        device="cpu",
        on_epoch=lambda _: sent.append(ranks.traffic.sent),
        ranks=ranks,
    )
    found = {"rank": ranks.rank, "edges": graph.num_edges, "peak": peak_memory(), "sent": sent[2] - sent[1]}
    sys.stdout.write(json.dumps(found) + "\n")  # in one piece, as the other rank writes too
    ranks.close()


if __name__ == "__main__":
    if sys.argv[1] == "hang":
        hang()
    if sys.argv[1] == "measure":
        measure(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        sys.exit()
    from uge_core.training.ranks import formed

    together = formed()
    together.share_cores()
    found = dict(trained(sys.argv[2:] or CASES, together))
    if together.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")
    together.close()
