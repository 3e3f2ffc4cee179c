"""`uge app`: opens the dashboard."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from uge_core.cli.arguments import DONE, Parsers, add_command, whole_number
from uge_core.errors import ConfigError
from uge_core.runs.store import default_root


def add(parsers: Parsers) -> None:
    """Declares `app`."""
    one = add_command(parsers, "app", run, help="open the dashboard")
    one.add_argument("--port", type=whole_number, help="default: Streamlit's own setting, 8501")


def run(args: argparse.Namespace) -> int:
    """Starts Streamlit on the dashboard's entry."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "app.py").exists():
        raise ConfigError(
            f"the dashboard is not beside this package ({root / 'app.py'} is missing); run uge app from a checkout"
        )
    store = Path(args.store or default_root()).resolve()
    # without --port the port stays Streamlit's business, so that its variables and config file are heard
    port = [] if args.port is None else [f"--server.port={args.port}"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *port]
    env = os.environ | {"UGE_STORE": str(store)}
    if os.name == "posix":
        # The server takes this process's place, so that whoever stops `uge app` has stopped the server.
        os.chdir(root)
        os.execve(sys.executable, command, env)
    try:
        return subprocess.call(command, cwd=root, env=env)
    except KeyboardInterrupt:
        # Ctrl-C is how a dashboard is closed.
        return DONE
