"""What the bench measures, and its record `uge-bench/1`: ratios within one run on one machine.

Times of one machine say nothing about another's; ratios taken one after the other on the same machine do.
Each measurement has a process of its own, so that its peak memory is its own. Rivals always train the method
none, the cheapest there is.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.cli.bench.pace import Pace
from uge_core.cli.bench.tables import RIVALS, per_epoch, taken
from uge_core.datasets import load
from uge_core.datasets.planted.samples import make_sample
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.machine import cores, stamp
from uge_core.registry import find, unknown_name
from uge_core.training.config import RunConfig

SCHEMA = "uge-bench/1"
PARTS = ("epochs", "lambdas", "scaling")
LAMS = tuple(round(0.1 + 0.2 * i, 1) for i in range(10))
_BUSY = 0.25  # load average per core from which a machine is not quiet


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        ours: pace of our engine.
        rival: pace of the rivals; an epoch of the literal recipe takes seconds.
        methods: what our engine is timed with.
        solos: lambdas of which each is trained alone, to find the fastest.
        nodes: sizes of the planted graphs.
        degree: their mean degree.
        audited: epochs that an embedding trains before it is audited.
        attackers: who attacks it.
        lams: members of the lambda path.
    """

    ours: Pace
    rival: Pace
    methods: tuple[str, ...]
    solos: tuple[float, ...]
    nodes: tuple[int, ...]
    degree: float = 27.5
    audited: int = 30
    attackers: tuple[str, ...] = DEFAULT_ATTACKERS
    lams: tuple[float, ...] = LAMS


FULL = Size(
    ours=Pace(warm=5, least=10, seconds=4.0, most=400),
    rival=Pace(warm=1, least=2, seconds=3.0, most=50),
    methods=("none", "uge-w", "uge-r", "uge-c", "uge-o", "uge-ok"),
    solos=(LAMS[0], LAMS[4], LAMS[-1]),
    nodes=(20_000, 90_000, 400_000, 1_600_000),
)
QUICK = Size(
    ours=Pace(warm=2, least=20, seconds=0.2, most=100),
    rival=Pace(warm=1, least=1, seconds=0.2, most=20),
    methods=("none", "uge-c", "uge-ok"),
    solos=LAMS[:1],
    nodes=(500, 1_000, 2_000),
    attackers=("linear",),
)


def bench(
    graphs: Sequence[AttributedGraph],
    *,
    parts: Sequence[str] = PARTS,
    backbones: Sequence[str] = (),
    nodes: Sequence[int] = (),
    degree: float | None = None,
    device: str = "auto",
    quick: bool = False,
    on_note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measures, and returns the record.

    Args:
        graphs: what to train on; none for `scaling` alone.
        parts: of `PARTS`.
        backbones: names; none: node2vec, gcn, sgc and gat, on bipartite graphs mf.
        nodes: sizes of the planted graphs for `scaling`; none: 20,000 to 1,600,000.
        degree: their mean degree; None: 27.5, as Pokec's.
        device: "auto", "cpu" or "cuda".
        quick: small and inexact, to see that it works.
        on_note: given a line as each measurement ends.

    Returns:
        `uge-bench/1`: `machine`, `warnings` and a list of rows per part. Where a contestant could not train, its
        row has the reason as `refused`.

    Raises:
        ConfigError: a name or a device that is not there.
    """
    for part in parts:
        if part not in PARTS:
            raise ConfigError(unknown_name("part of the bench", part, PARTS))
    for name in backbones:
        find("backbones", name)
    size = QUICK if quick else FULL
    size = replace(size, nodes=tuple(nodes) or size.nodes, degree=size.degree if degree is None else degree)
    if "scaling" in parts and len(set(size.nodes)) < 2:
        raise ConfigError(f"nodes = {size.nodes[0]}: an exponent needs two sizes or more; name them as 10000,100000")
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    where = _device(device)
    timer = _Timer(where, size, on_note)
    rows: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    for graph in map(_lean, graphs):
        for backbone in backbones or (("mf",) if graph.bipartite else ("node2vec", "gcn", "sgc", "gat")):
            if "epochs" in parts:
                rows["epochs"] += timer.epochs(graph, backbone)
            if "lambdas" in parts:
                rows["lambdas"] += timer.lambdas(graph, backbone)
    if "scaling" in parts:
        rows["scaling"] = timer.scaling()
    measured = [row for part in PARTS for row in rows[part]]
    if measured and all(row.get("refused") for row in measured):
        raise ConfigError(f"nothing could be timed: {measured[0]['refused']}")
    machine = stamp(timer.device_name) | {"load_average": load_average}
    return {"schema": SCHEMA, "quick": quick, "machine": machine, "warnings": _warnings(load_average), **rows}


def _device(name: str) -> str:
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device = {name!r} is not allowed; allowed: auto, cpu, cuda")
    if name == "cpu":
        return name
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = cuda, but this torch sees no CUDA device; use --device cpu or auto")
    return "cuda" if torch.cuda.is_available() else "cpu"


def _warnings(load_average: float | None) -> list[str]:
    if load_average is None or load_average < _BUSY * cores():
        return []
    return [
        f"the machine was not quiet: load average {load_average:.1f} on "
        f"{cores()} cores at the start. Ratios may be off, "
        "those of short epochs to long ones first; run it again when nothing else runs"
    ]


def _lean(graph: AttributedGraph) -> AttributedGraph:
    """The graph without what training does not read, as it is sent to each process."""
    return replace(graph, node_ids=None, truth=None, messages=(), columns=())


def _config(graph: AttributedGraph, backbone: str, method: str, lam: float | None = None) -> RunConfig:
    """A run on the first attribute with two groups; without a twin, as rivals have none."""
    sensitive = next((a.name for a in graph.audited if int((a.sizes > 0).sum()) > 1), "")
    return RunConfig.resolve(graph, sensitive=sensitive, backbone=backbone, method=method, lam=lam, exposure="seen")


class _Timer:
    """Measures one after the other, each in a process of its own."""

    def __init__(self, device: str, size: Size, on_note: Callable[[str], None]) -> None:
        self.device, self.size, self.on_note = device, size, on_note
        self.device_name: str | None = None
        # Importing takes longer than many a measurement: children fork from a process that has imported and
        # done nothing else. A CUDA context must not be forked.
        forks = device == "cpu" and "forkserver" in multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:
            self.context.set_forkserver_preload(["uge_core.cli.bench.measure"])

    def time(
        self,
        label: str,
        graph: AttributedGraph,
        backbone: str,
        method: str,
        lams: Sequence[float | None] = (None,),
        contestant: str = "ours",
    ) -> dict[str, Any]:
        """One measurement, as `measure` describes it."""
        try:
            configs = [_config(graph, backbone, method, lam) for lam in lams]
        except ConfigError as error:
            return {"refused": str(error)}
        pace = self.size.ours if contestant == "ours" else self.size.rival
        figures = self.alone(_measure, graph, contestant, configs, pace, self.device)
        self.device_name = figures.pop("device", self.device_name)
        self.on_note(f"{label}: {figures['refused'] or per_epoch(figures['seconds'])}")
        return figures

    def alone(self, work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
        """What `work` returns, done in a process of its own."""
        try:
            with ProcessPoolExecutor(1, mp_context=self.context) as pool:
                return pool.submit(work, *given).result()
        except BrokenProcessPool:
            return {"refused": "its process was ended from outside, perhaps for want of memory"}

    def epochs(self, graph: AttributedGraph, backbone: str) -> list[dict[str, Any]]:
        """Our engine with each method and each rival with none, and their ratios."""
        rows = []
        for contestant, method in [("ours", m) for m in self.size.methods] + [(r, "none") for r in RIVALS]:
            if contestant == "shared-block" and find("backbones", backbone).loss == "bpr":
                continue
            label = f"{graph.name} {backbone} {method if contestant == 'ours' else contestant}"
            figures = self.time(label, graph, backbone, method, contestant=contestant)
            rows.append(
                {"data": graph.name, "backbone": backbone, "contestant": contestant, "method": method, **figures}
            )
        seconds = {(r["contestant"], r["method"]): r.get("seconds") for r in rows}
        plain = seconds["ours", "none"]
        for row in rows:
            own = row.get("seconds")
            # no rival has the kernel penalty; what it costs is told against none
            fair = row["contestant"] == "ours" and row["method"] != "uge-ok"
            row["times_faster_than"] = {r: _ratio(seconds.get((r, "none")), own) for r in RIVALS} if fair else None
            row["times_none"] = _ratio(own, plain)
        return rows

    def lambdas(self, graph: AttributedGraph, backbone: str) -> list[dict[str, Any]]:
        """All lambdas of UGE-C in one pass against the fastest of some alone."""
        solos = [
            self.time(f"{graph.name} {backbone} uge-c lambda={lam:g} alone", graph, backbone, "uge-c", [lam])
            for lam in self.size.solos
        ]
        path = self.time(
            f"{graph.name} {backbone} uge-c {len(self.size.lams)} lambdas", graph, backbone, "uge-c", self.size.lams
        )
        fastest = min((s for s in solos if not s["refused"]), key=lambda s: s["seconds"], default={})
        return [
            {
                "data": graph.name,
                "backbone": backbone,
                "method": "uge-c",
                "members": len(self.size.lams),
                **path,
                "solo_seconds": fastest.get("seconds"),
                "solo_peak_mb": fastest.get("peak_mb"),
                "times_solo": _ratio(path.get("seconds"), fastest.get("seconds")),
            }
        ]

    def scaling(self) -> list[dict[str, Any]]:
        """Planted towns of rising size: read from files, trained with node2vec, audited."""
        steps: dict[tuple[str, str | None], list[dict[str, Any]]] = {
            ("reading", None): [],
            ("training", "none"): [],
            ("training", "uge-c"): [],
            ("auditing", "none"): [],
        }
        for n in sorted(set(self.size.nodes)):
            with TemporaryDirectory() as folder:
                town = Path(folder) / "town"
                made = self.alone(_made, town, n, round(n * self.size.degree / 2))
                if made["refused"]:
                    raise ConfigError(f"nodes = {n}: the graph could not be made: {made['refused']}")
                read = self.alone(_read, town)
                graph = _lean(load(town))
            self.on_note(f"town of {n:,} reading: {read['refused'] or taken(read['seconds'])}")
            points: dict[tuple[str, str | None], dict[str, Any]] = {("reading", None): read}
            for method in ("none", "uge-c"):
                label = f"town of {n:,} {method}"
                points["training", method] = self.time(label, graph, "node2vec", method)
            config = _config(graph, "node2vec", "none")
            audited = self.alone(_audited, graph, config, self.size.audited, self.size.attackers, self.device)
            self.on_note(f"town of {n:,} auditing: {audited['refused'] or taken(audited['seconds'])}")
            points["auditing", "none"] = audited
            for step, point in points.items():
                steps[step].append({"nodes": n, "edges": graph.num_edges, **point})
        return [
            {
                "step": step,
                "backbone": None if method is None else "node2vec",
                "method": method,
                "exponent": fitted_exponent(points),
                "points": points,
            }
            for (step, method), points in steps.items()
        ]


def _measure(graph: AttributedGraph, contestant: str, configs: list[RunConfig], pace: Pace, device: str) -> Any:
    """`measure`, imported where it runs: this process needs no torch."""
    from uge_core.cli.bench.measure import measure

    return measure(graph, contestant, configs, pace, device)


def _made(folder: Path, nodes: int, edges: int) -> dict[str, Any]:
    """Writes a planted town."""
    make_sample("town", folder, seed=0, nodes=nodes, edges=edges)
    return {"refused": None}


def _read(folder: Path) -> dict[str, Any]:
    """`measure.read`, imported where it runs."""
    from uge_core.cli.bench.measure import read

    return read(folder)


def _audited(
    graph: AttributedGraph, config: RunConfig, epochs: int, attackers: Sequence[str], device: str
) -> dict[str, Any]:
    """`measure.audited`, imported where it runs."""
    from uge_core.cli.bench.measure import audited

    return audited(graph, config, epochs, attackers, device)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def fitted_exponent(points: Sequence[dict[str, Any]]) -> float | None:
    """B of seconds = a nodes^b by least squares of logs; None where fewer than two sizes were timed."""
    timed = [(p["nodes"], p["seconds"]) for p in points if not p["refused"]]
    if len(timed) < 2:
        return None
    size, seconds = np.log(np.array(timed, dtype=float)).T
    return float(np.polyfit(size, seconds, 1)[0])
