"""Runs campaigns and counts what was tried, what held and what failed: ``python -m tests.campaigns [NAME ...]``.

A campaign is a module of this folder with ``run(seed, quick)``, which yields each trial's name and None where it held,
or what failed.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time

import tests.campaigns as here


def main() -> int:
    """Runs the campaigns named, or all; 1 where a trial failed."""
    names = sorted(m.name for m in pkgutil.iter_modules(here.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other trials")
    parser.add_argument("--quick", action="store_true", help="a few trials of each")
    parser.add_argument("--only", nargs="+", metavar="START", help="how the names of trials begin; of hostile alone")
    args = parser.parse_args()
    more = {"only": tuple(args.only)} if args.only else {}
    if unknown := set(args.names) - set(names):
        parser.error(f"no campaign {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    lines, failures = [], 0
    for name in args.names or names:
        began, tried, failed = time.monotonic(), 0, 0
        for trial, fault in importlib.import_module(f"tests.campaigns.{name}").run(args.seed, args.quick, **more):
            tried += 1
            if fault is not None:
                failed += 1
                print(f"{name}: FAILED {trial}: {fault}", flush=True)
        failures += failed
        lines.append(
            f"{name:12} tried {tried:5}  held {tried - failed:5}  failed {failed:5}  {time.monotonic() - began:6.0f} s"
        )
        print(lines[-1], flush=True)
    print("\n" + "\n".join(lines))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
