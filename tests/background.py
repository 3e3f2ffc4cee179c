"""The processes that a store's pages start: which there are, and their end."""

import signal

import psutil

from uge_core.dashboard.jobs.queue import Queue
from uge_core.explore.whatif.channel import process
from uge_core.machine import birth
from uge_core.runs.store import RunStore


def processes_of(store: RunStore, command: str) -> list[int]:
    """The living processes that ``uge COMMAND`` of this store is, noted or not."""
    words = {command, str(store.root.resolve())}
    running = [p.pid for p in psutil.process_iter(["cmdline"]) if words <= set(p.info["cmdline"] or ())]
    return [pid for pid in running if birth(pid) is not None]


def end_processes(store: RunStore) -> None:
    """Ends the workers of a store's queue and its what-if process."""
    for background in (*map(Queue(store).worker, ("cpu", "gpu")), process(store.root)):
        background.end(signal.SIGKILL)
