"""What a run was made with: versions, platform, device, commit. Nothing that names a person or a machine.

And where what is to be kept goes.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

# glibc's malloc.h
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "pandas", "scikit-learn", "numba")


def stamp(device: str | None = None) -> dict[str, Any]:
    """The environment of a run, as stored with it and printed in reports.

    Versions are read from package metadata, so that nothing heavy is imported for it.

    Args:
        device: the name of the device that trained, such as "cpu" or "NVIDIA H100".
    """
    return {
        "uge_core": version("uge-core"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        "threads": cores(),
        "packages": {name: version(name) for name in _PACKAGES},
        "commit": _commit(Path(__file__).resolve().parents[1]),
    }


def default_root() -> Path:
    """The store: ``$UGE_STORE``, else ``./uge-store``."""
    return Path(os.environ.get("UGE_STORE") or "uge-store")


def version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def cores() -> int:
    """The processor cores this process may use; ``$UGE_CORES``, where it is set, is the most."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = os.environ.get("UGE_CORES", "")
    return min(there, int(most)) if most.isdecimal() and int(most) else there


def threads(number: int) -> dict[str, str]:
    """The environment in which a process, and the libraries it loads, take so many threads."""
    names = ("UGE_CORES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return dict.fromkeys(names, str(number))


def peak_memory(*, reset: bool = False) -> float:
    """The process's peak resident memory in bytes; with `reset` it is counted from here on.

    NaN where the system does not say (anything but Linux): psutil tells what is resident now, and no peak.
    """
    with suppress(OSError):
        if reset:
            # getrusage's peak cannot be set back, and a child's starts at its parent's
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * float(line.split()[1])
    return float("nan")


def keep_freed_memory() -> None:
    """Tells the C library to keep what is freed, for processes that train.

    A step frees and asks for the same tens of megabytes again. By its default glibc gives blocks of that size back to
    the system each time, and zeroing the pages anew took half of an ensemble's step. Other C libraries
    are left as they are.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter, value in ((_MMAP_THRESHOLD, 2**31 - 1), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
            libc.mallopt(parameter, value)


def code_digest() -> str:
    """The SHA-256 of this package's sources."""
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def processor() -> str:
    """The processor's kind: numbers have the same bits on processors of one kind."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit(root: Path) -> str | None:
    """The checkout's commit, with "+changes" where files differ from it; None outside a checkout."""
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def birth(pid: int) -> str | None:
    """When a process started, as text that differs when its number is used again; None: no such process, or a zombie.

    It is counted from the machine's start, since the time of day of a start changes whenever the clock is set.
    Empty where the system does not say it of another user's process.
    """
    import psutil  # takes as long to load as all that `uge --help` needs

    try:
        booted = psutil.boot_time()
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return f"{100 * (process.create_time() - booted):.0f}"
    except psutil.AccessDenied:
        return ""
    except psutil.NoSuchProcess:
        return None


def alive(pid: int | None, born: str | None) -> bool:
    """Whether the process that had number `pid` and was `born` then is still there."""
    return pid is not None and birth(pid) in (born or "", "")
