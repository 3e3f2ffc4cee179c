"""Does this machine have what training, auditing and the dashboard need? Each check says what to do."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uge_core.datasets.kept import KeptGraphs
from uge_core.errors import UgeError
from uge_core.kernels.shared import sum_rows
from uge_core.machine import cores, version
from uge_core.runs.on_ray import answers
from uge_core.runs.places import place
from uge_core.runs.store import RunStore
from uge_core.views.report import browser

Verdict = Literal["ok", "note", "problem"]
PORT = 8501
"""Where Streamlit listens by default."""
_PYTHON = (3, 11)
_ROOM = 2e9  # bytes of disk and of memory that a graph of some 100,000 nodes wants
_RAY = "127.0.0.1:6379"  # where a cluster of Ray on this machine listens by default
_OPEN_NETWORKS = ("", "0.0.0.0", "::")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        verdict: "ok", "note" (works, with less), or "problem" (something will not work).
        found: what was found.
        remedy: what to do; empty where nothing is to be done.
    """

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


def examine(store: RunStore, *, port: int = PORT, check: bool = False, on: str | None = None) -> tuple[Check, ...]:
    """Looks at Python, packages, kernels, devices, the store, memory, disk, the browser and the port.

    Nothing is kept: what is written for a check is removed again.

    Args:
        store: the store that is looked at.
        port: where the dashboard would listen.
        check: read all that is stored, and compare it with its SHA-256.
        on: a place of Ray that is asked what it has.
    """
    looks: tuple[Callable[[], Iterator[Check]], ...] = (
        _python,
        _packages,
        _kernels,
        _devices,
        lambda: _ray(on),
        lambda: _store(store),
        *((lambda: _whole(store),) if check else ()),
        lambda: _room(store.root),
        _printing,
        lambda: _listening(port),
    )
    return tuple(check for look in looks for check in look())


def _python() -> Iterator[Check]:
    release = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info[:2] >= _PYTHON
    yield Check("Python", "ok" if fits else "problem", release, "" if fits else "take Python 3.11 or newer")


def _packages() -> Iterator[Check]:
    """Imported in this process, as a package that is there may still not load."""
    for name, module, least in (
        ("torch", "torch", (2, 6)),
        ("torch-geometric", "torch_geometric", (2, 6)),
        ("numpy", "numpy", (2, 0)),
        ("scipy", "scipy", (1, 13)),
        ("pandas", "pandas", (2, 2)),
        ("scikit-learn", "sklearn", (1, 5)),
        ("numba", "numba", (0, 60)),
        ("umap-learn", "umap", (0, 5)),
        ("streamlit", "streamlit", (1, 67)),
        ("plotly", "plotly", (7, 0)),
    ):
        install = f"install it: pip install '{name}>={'.'.join(map(str, least))}'"
        release = version(name)
        if release is None:
            yield Check(name, "problem", "not installed", install)
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a package says about others is not asked here
                importlib.import_module(module)
        except Exception as error:
            yield Check(name, "problem", f"{release}, which does not load: {error}"[:200], install)
            continue
        numbers = tuple(int(part) for part in release.split("+")[0].split(".")[:2] if part.isdecimal())
        yield Check(name, "ok", release) if numbers >= least else Check(name, "problem", f"{release}, too old", install)


def _kernels() -> Iterator[Check]:
    """Compiles one kernel, and asks whether what is compiled is kept."""
    try:
        import numpy as np
        from numba.core.config import CACHE_DIR  # type: ignore[attr-defined]

        sums = np.zeros((1, 1))
        sum_rows(np.ones((3, 1), np.float32), np.zeros(3, np.int64), sums)
        if sums[0, 0] != 3.0:
            raise ArithmeticError(f"1 + 1 + 1 gave {sums[0, 0]:g}")
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:200]
        yield Check("compiled kernels", "problem", text, "name a folder you may write to with $NUMBA_CACHE_DIR")
        return
    where = f"kept in {CACHE_DIR}" if CACHE_DIR else "kept beside the package"
    yield Check("compiled kernels", "ok", f"work, {where}")


def _devices() -> Iterator[Check]:
    yield Check("processor", "ok", f"{cores()} core{'s' * (cores() != 1)} for this process")
    try:
        import torch

        if torch.cuda.is_available():
            yield Check("GPU", "ok", ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))))
        else:
            yield Check("GPU", "note", "none that torch sees; training takes the processor")
    except Exception as error:
        yield Check("GPU", "note", f"torch does not say ({error})"[:200])


def _ray(on: str | None) -> Iterator[Check]:
    """Which Ray is there, whether a cluster seems to run, and what the one has that was asked for; Ray is loaded for that alone."""
    release = version("ray")
    if release is None and on is None:
        yield Check("Ray", "ok", "not installed; --on ray alone needs it")
        return
    address = os.environ.get("RAY_ADDRESS") or _RAY
    if release:
        found = "something answers" if answers(address, 0.5) else "no cluster"
        yield Check("Ray", "ok", f"{release}, {found} at {address}")
    if on is not None:
        try:
            yield Check(f"cluster {on}", "ok", getattr(place(on), "found", lambda: "this process")())
        except UgeError as error:
            yield Check(f"cluster {on}", "problem", str(error))


def _store(store: RunStore) -> Iterator[Check]:
    """Opens the store, and asks whether it is private, may be written, and is on a disk of this machine."""
    try:
        runs = store.list(audits=False, archived=True)
    except UgeError as error:
        yield Check("store", "problem", str(error))
        return
    if not store.root.exists():
        yield Check("store", "ok", f"{store.root} is made by the first run")
        return
    damaged = [run.id for run in runs if run.status == "damaged"]
    words = f"{len(runs)} run{'s' * (len(runs) != 1)} in {store.root}"
    if damaged:
        yield Check("store", "problem", f"{words}, damaged: {', '.join(damaged[:5])}", "uge runs delete removes them")
    else:
        yield Check("store", "ok", words)
    mode = store.root.stat().st_mode & 0o777
    if mode & 0o077:
        advice = f"chmod 700 {store.root}: embeddings are made from people's attributes"
        yield Check("store's privacy", "problem", f"others may look into it (mode {mode:o})", advice)
    if not os.access(store.root, os.W_OK):
        yield Check("store's disk", "problem", "may not be written", "name another store with --store or $UGE_STORE")
    if kind := _network_disk(store.root):
        advice = "SQLite's locks do not hold there: keep the store on a local disk"
        yield Check("store's disk", "problem", f"lies on {kind}", advice)
    if kept := KeptGraphs(store.root).list():
        size = sum(k.size for k in kept) / 1e6
        words = f"{len(kept)} large graph{'s' * (len(kept) != 1)} as arrays, {size:,.0f} MB"
        yield Check("kept graphs", "ok", f"{words}: read anew where they are gone, as after uge store purge")


def _whole(store: RunStore) -> Iterator[Check]:
    """Reads all that is stored: a check for each thing that is not as it was written."""
    remedy = "train or audit it again, delete it, or bring it back from a copy"
    try:
        faults = list(store.faults())
    except UgeError as error:
        yield Check("store's content", "problem", str(error))
        return
    for fault in faults:
        yield Check("store's content", "problem", fault, remedy)
    if not faults:
        yield Check("store's content", "ok", "all that is stored is as it was written")


def _network_disk(path: Path) -> str | None:
    """The kind of the file system, where it is one of another machine; None also where the system does not say."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return None
    real = path.resolve()
    place, kind = max(((p, k) for p, k in mounts if real.is_relative_to(p)), key=lambda m: len(m[0]), default=("", ""))
    return kind if place and kind.startswith(("nfs", "cifs", "smb", "fuse.sshfs", "9p", "ceph", "lustre")) else None


def _room(root: Path) -> Iterator[Check]:
    there = next(p for p in (root.absolute(), *root.absolute().parents) if p.exists())
    rooms = {"disk": float(shutil.disk_usage(there).free)}
    with suppress(ImportError):
        import torch

        from uge_core.training.memory import free

        rooms["memory"] = free(torch.device("cpu"))
    for name, left in rooms.items():
        if left < float("inf"):
            enough = left >= _ROOM
            advice = "" if enough else f"make room: a graph of 100,000 nodes wants {_ROOM / 1e9:.0f} GB"
            yield Check(name, "ok" if enough else "note", f"{left / 1e9:.1f} GB free", advice)


def _printing() -> Iterator[Check]:
    program = browser()
    advice = "" if program else "install Chromium or Chrome, or name one with $BROWSER_PATH; the HTML report needs none"
    yield Check("PDF reports", "ok" if program else "note", program or "no Chromium or Chrome to print them", advice)


def _listening(port: int) -> Iterator[Check]:
    address = os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1")
    if address in _OPEN_NETWORKS:
        advice = "unset STREAMLIT_SERVER_ADDRESS, or let people sign in (docs/dashboard.md, Sign-in)"
        yield Check("address", "problem", "the dashboard would listen to the whole network", advice)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OverflowError:
            yield Check("port", "problem", f"{port} is no port; the largest is 65535", "uge app --port 8501")
        except OSError as error:
            yield Check(
                "port", "note", f"{port}: {error.strerror}", f"uge app --port {port + 1 if port < 65535 else 8501}"
            )
        else:
            yield Check("port", "ok", f"{port} is free")
