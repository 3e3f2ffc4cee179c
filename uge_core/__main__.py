"""`python -m uge_core` and the console script `uge`."""

import os
import sys
from pathlib import Path


def main() -> int:
    """Runs the command line on the process's arguments."""
    # Two OpenMP runtimes (torch's and scikit-learn's) that spin while waiting slow each other down
    # tenfold on a busy machine; it has to be said before either is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            # A letter that the terminal's encoding lacks is shown as its code.
            stream.reconfigure(errors="backslashreplace")
    from uge_core.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
