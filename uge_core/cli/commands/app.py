"""`uge app`: opens the dashboard."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from uge_core.cli.arguments import DONE, Parsers, add_command, whole_number
from uge_core.datasets import roots
from uge_core.errors import ConfigError
from uge_core.runs.store import default_root


def add(parsers: Parsers) -> None:
    """Declares `app`."""
    one = add_command(parsers, "app", run, help="open the dashboard")
    one.add_argument("--port", type=whole_number, help="default: Streamlit's own setting, 8501")
    one.add_argument("--address", help="of this machine, to listen on; default: 127.0.0.1, which no other reaches")
    one.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this name too, such as that of a proxy in front (repeat it for more)",
    )
    one.add_argument(
        "--data-root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="let pages read graphs below this folder, and besides uploads and samples no other (repeat it for more); "
        "default: all that you may read, or none where readers sign in",
    )


def run(args: argparse.Namespace) -> int:
    """Starts Streamlit on the dashboard's entry."""
    entry = _entry()
    store = Path(args.store or default_root()).resolve()
    # without --port the port stays Streamlit's business, so that its variables and config file are heard
    port = [] if args.port is None else [f"--server.port={args.port}"]
    address = [] if args.address is None else [f"--server.address={args.address}"]
    # Streamlit takes those on the command line instead of those in its files.
    names = [f"--server.allowedHosts={name}" for name in args.allow_host]
    command = [sys.executable, "-m", "streamlit", "run", str(entry), *port, *address, *names]
    # A module that lies where `uge app` is typed is not taken for one of ours.
    env = os.environ | {"UGE_STORE": str(store), "PYTHONSAFEPATH": "1"}
    for folder in args.data_root:
        if not Path(folder).expanduser().is_dir():
            raise ConfigError(f"--data-root {folder}: no such folder; name one that is there")
    if args.data_root:
        env[roots.VARIABLE] = roots.joined(args.data_root)
    if os.name == "posix":
        # The server takes this process's place, so that whoever stops `uge app` has stopped the server.
        os.execve(sys.executable, command, env)
    try:
        return subprocess.call(command, env=env)
    except KeyboardInterrupt:
        # Ctrl-C is how a dashboard is closed.
        return DONE


def _entry() -> Path:
    """`app.py`, which lies beside the package in a checkout and inside it once installed."""
    package = Path(__file__).resolve().parents[2]
    places = (package / "app", package.parent)
    for place in places:
        if (place / "pages" / "main.py").exists():
            return place / "app.py"
    raise ConfigError(f"the dashboard is missing: there is no pages/main.py in {places[0]}; install uge-core again")
