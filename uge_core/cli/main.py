"""The command line: the same steps as the Python surface.

Results go to stdout, progress, remarks and errors to stderr. Exit codes: 0 done, 1 what the data hold
blocks their use (`data inspect`), 2 any other error, 3 not enough evidence, 130 interrupted. An error
is one line, and a second with the next command where files are not recognised; `--debug` adds the traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from uge_core.cli.arguments import DONE, INTERRUPTED, USER_ERROR, Parser
from uge_core.cli.commands import add_all
from uge_core.cli.printing import complain, drop_output, remark, visible_terminal
from uge_core.errors import NotRecognised, UgeError


def run(arguments: Sequence[str]) -> int:
    """Runs one command.

    Args:
        arguments: as typed, without the program's name.

    Returns:
        The exit code.
    """
    debug = "--debug" in arguments
    before = os.umask(0o077)  # what commands write is made from people's attributes
    try:
        return _run(arguments, debug)
    finally:
        os.umask(before)


def _run(arguments: Sequence[str], debug: bool) -> int:
    try:
        try:
            args = parser().parse_args(arguments)
            with visible_terminal():
                code: int = args.command(args)
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return complain("interrupted", debug, INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (uge runs list | head); that is no fault.
        drop_output()
        return DONE
    except NotRecognised as error:
        complain(error.found, debug, USER_ERROR)
        remark(error.next_step)
        return USER_ERROR
    except UgeError as error:
        return complain(str(error), debug, USER_ERROR)
    except MemoryError:
        return complain("not enough memory; try fewer runs at once (--solo) or a smaller dim", debug, USER_ERROR)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "the output cannot be written: "
        return complain(f"{where}{error.strerror or error}; name another place", debug, USER_ERROR)
    except UnicodeError as error:
        text = f"the output cannot be written: {error}; set PYTHONIOENCODING=utf-8"
        return complain(text, debug, USER_ERROR)
    except Exception as error:
        text = f"internal error, {type(error).__name__}: {error}; run it again with --debug for the traceback"
        return complain(text, debug, USER_ERROR)


def parser() -> Parser:
    """The command line's grammar."""
    top = Parser(prog="uge", description="Train debiased graph embeddings and audit what any embedding gives away.")
    add_all(top.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser))
    return top
