"""`python -m uge_core` and the console script `uge`."""

import os
import sys


def main() -> int:
    """Runs the command line on the process's arguments."""
    # Two OpenMP runtimes (torch's and scikit-learn's) that spin while waiting slow each other down
    # tenfold on a busy machine; it has to be said before either is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from uge_core.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
