"""Hostile files and names: each is refused in one line or read right, in time, within the memory that the limit stands for.

The files are made by code in a temporary folder and never stored. Each is read by what the public names read it with
(`load` with `inspect` and `describe`, or `read_embedding`) and by ``uge data inspect`` and ``uge data describe``, every
time in a process of its own. A trial fails on a traceback, on more than `SECONDS`, on memory above twice the limit, on a
wrong reading, and where a message holds a character that a terminal obeys.
"""

from __future__ import annotations

import gzip
import importlib
import io
import json
import lzma
import os
import pickle
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 2**28
"""Bytes that a file may unpack into in these trials; the default depends on the machine."""
SECONDS = 10.0
"""Of work, which does not depend on what else the machine does."""
_PATIENCE = 300.0
"""For a process that does nothing, or must wait for others: what works is ended after twice `SECONDS`."""
_CEILING = 10 * 2**30
"""Address space of a process, so that one that fails does not take the machine along."""
_NODES = "id,g\n1,a\n2,b\n3,a\n"
_EDGES = "source,target\n1,2\n2,3\n"
_DIRECTIVES = "\u202e\u2066\u200f\u061c\x1b\x07"
"""Characters that turn the text behind them round, or that a terminal obeys."""

Make = Callable[[Path], Any]
Files = dict[str, "str | bytes | Make"]


@dataclass(frozen=True)
class Trial:
    """One hostile file or name.

    Attributes:
        name: what it is.
        files: by name, contents or what writes them, into a folder.
        reads: the nodes and edges where it must be read; None: it must be refused; "either": both are right.
        spec: what is opened, in the folder; empty: the folder.
        embeds: it is read as the embedding of a graph of three people.
        times: the memory that it may take, as a multiple of the limit.
    """

    name: str
    files: Files
    reads: tuple[int, int] | str | None = None
    spec: str = ""
    embeds: bool = False
    times: int = 2


def run(seed: int, quick: bool, only: tuple[str, ...] = ()) -> Iterator[tuple[str, str | None]]:
    """One trial in three, or in ten.

    Args:
        seed: another one leads to other trials; three of them in a row to all.
        quick: a few of each kind.
        only: how the names of the trials begin, such as "xlsx"; of these all are tried.
    """
    _warm_up()
    for place, trial in enumerate(trials()):
        every = 1 if only else 10 if quick else 3
        if place % every != seed % every or not trial.name.startswith(only or ""):
            continue
        for way, fault in _held(trial):
            yield f"{trial.name}, {way}", fault


def _warm_up() -> None:
    """Loads what readers load, for all processes that are forked from here; none of it is used here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder, {"nodes.csv": _NODES, "edges.csv": _EDGES})

        def modules() -> _Outcome:
            import pyarrow.parquet  # noqa: F401
            import python_calamine  # noqa: F401
            import torch  # noqa: F401

            _loaded(folder)
            _command("inspect", folder)
            _command("describe", folder)
            return _Outcome(json.dumps(list(sys.modules)))

        for module in json.loads(_apart(modules, _PATIENCE).said):
            with suppress(ImportError):
                importlib.import_module(module)


def _held(trial: Trial) -> Iterator[tuple[str, str | None]]:
    """Every way to read it, with what failed."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        made = _apart(lambda: _make(folder, trial.files), _PATIENCE)
        if made.fault:
            yield "made", made.fault
            return
        place = folder / trial.spec if trial.spec else folder
        if trial.embeds:
            yield "read_embedding", _judged(_apart(lambda: _embedding(place)), trial)
            return
        yield "load", _judged(_apart(lambda: _loaded(place)), trial)
        yield "uge data inspect", _judged(_apart(lambda: _command("inspect", place)), trial)
        if place.is_dir():
            # What a folder probably is may be told of one that cannot be read as it is.
            yield "uge data describe", _judged(_apart(lambda: _command("describe", place)), trial, "either")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _Outcome:
    """What came of a process: a refusal or a reading, or what went wrong with it.

    Attributes:
        said: the refusal, or all that was printed.
        read: nodes and edges, where it was read.
        fault: a traceback, or how the process died.
        seconds: how long it took.
        memory: bytes beyond those it began with.
    """

    said: str = ""
    read: Any = None
    fault: str = ""
    seconds: float = 0.0
    memory: float = 0.0


def _judged(outcome: _Outcome, trial: Trial, expected: Any = None) -> str | None:
    """What is wrong with an outcome, or None."""
    wanted = expected or trial.reads
    if outcome.fault:
        return outcome.fault
    if outcome.seconds > SECONDS:
        return f"took {outcome.seconds:.1f} s"
    if outcome.memory > trial.times * LIMIT:
        return f"took {outcome.memory / 2**20:,.0f} MiB where {trial.times * LIMIT / 2**20:,.0f} are allowed"
    obeyed = {
        c for c in outcome.said if c != "\n" and (unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in _DIRECTIVES)
    }
    if obeyed or any(unicodedata.bidirectional(c) in _BIDI for c in outcome.said):
        return f"a message holds {sorted(map(ascii, obeyed))}: {outcome.said!a}"[:400]
    if wanted is None and outcome.read is not None:
        return f"was read as {outcome.read}, where it must be refused"
    if isinstance(wanted, tuple) and outcome.read is None:
        return f"was refused: {outcome.said}"[:400]
    if isinstance(wanted, tuple) and outcome.read is not True and tuple(outcome.read) != wanted:
        return f"was read as {outcome.read}, expected {wanted}"
    return None


_BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def _apart(work: Callable[[], _Outcome], most: float = 2 * SECONDS) -> _Outcome:
    """Does some work in a process of its own, with a limit on its time and memory."""
    ours, theirs = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if not child:
        _work(work, theirs, int(most))
    os.close(theirs)
    try:
        with os.fdopen(ours, "rb") as pipe:
            os.set_blocking(pipe.fileno(), False)
            told, ended = b"", False
            while time.monotonic() - began < _PATIENCE and not ended:
                with suppress(BlockingIOError):
                    told += pipe.read() or b""
                ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                time.sleep(0.005)
            if not ended:
                os.kill(child, signal.SIGKILL)
            told += (pipe.read() or b"") if ended else b""
    finally:
        _, status, used = os.wait4(child, 0)
    seconds = used.ru_utime + used.ru_stime
    if not ended or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        took = time.monotonic() - began
        return _Outcome(fault=f"hung: ended after {took:.0f} s, {seconds:.1f} s of work", seconds=seconds)
    try:
        return _Outcome(**json.loads(told), seconds=seconds)
    except ValueError:
        return _Outcome(fault=f"died: {os.waitstatus_to_exitcode(status)}", seconds=seconds)


def _work(work: Callable[[], _Outcome], pipe: int, seconds: int) -> None:
    """The child's part of `_apart`: never comes back."""
    from uge_core.errors import UgeError
    from uge_core.machine import peak_memory

    resource.setrlimit(resource.RLIMIT_AS, (_CEILING, _CEILING))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    os.environ["UGE_MAX_UNPACKED"] = str(LIMIT)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    before = peak_memory(reset=True)
    told: dict[str, Any]
    try:
        outcome = work()
        told = {"said": outcome.said, "read": outcome.read, "fault": outcome.fault}
    except UgeError as error:
        told = {"said": str(error)}
    except BaseException as error:
        told = {"fault": "traceback: " + "".join(traceback.format_exception(error))[-600:]}
    told["memory"] = peak_memory() - before
    data = json.dumps(told).encode()
    while data:
        data = data[os.write(pipe, data) :]
    os._exit(0)


def _make(folder: Path, files: Files) -> _Outcome:
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + os.fsencode(name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)
    return _Outcome()


def _loaded(place: Path) -> _Outcome:
    from uge_core.datasets import describe, inspect, load

    graph = load(place)
    said = describe(graph) + "\n" + "\n".join(f"{m.text} {m.remedy} {' '.join(m.examples)}" for m in graph.messages)
    json.dumps(inspect(graph))
    return _Outcome(said, [graph.num_nodes, graph.num_edges])


def _embedding(path: Path) -> _Outcome:
    from uge_core.datasets import load
    from uge_core.datasets.embeddings import read_embedding

    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder), {"nodes.csv": _NODES, "edges.csv": _EDGES})
        graph = load(folder)
    vectors = read_embedding(path, graph, on_note=said.append)
    return _Outcome("\n".join(said), list(vectors.shape))


def _command(name: str, place: Path) -> _Outcome:
    """``uge data NAME``: what it printed, and whether it read the graph."""
    from uge_core.cli.main import run as uge

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = uge(["data", name, str(place)])
    said = out.getvalue() + err.getvalue()
    if code not in (0, 1, 2) or "Traceback" in said or "internal error" in said:
        return _Outcome(said, fault=f"code {code}: {said[-300:]!a}")
    if code and not err.getvalue():
        return _Outcome(said, fault=f"code {code}, and nothing was said")
    # More than an error and its next step is a name that holds a line's end.
    if code and err.getvalue().count("\n") > 2:
        return _Outcome(said, fault=f"an error of several lines: {said[-300:]!a}")
    return _Outcome(said, None if code else True)


def trials() -> Iterator[Trial]:
    """All of them, the kinds one after the other."""
    kinds = (
        _parquet,
        _arrays,
        _matrices,
        _workbooks,
        _xml,
        _json_graphs,
        _other_graphs,
        _tables,
        _packed,
        _specials,
        _links,
        _names,
        _cards,
        _torch,
        _embeddings,
    )
    for kind in kinds:
        yield from kind()


# What writes files


def _frame(make: Callable[[Any], Any], **options: Any) -> Make:
    """A Parquet file of the columns that `make` makes of pyarrow."""

    def write(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = make(pa)
        pq.write_table(pa.table(table) if isinstance(table, dict) else table, path, **options)

    return write


def _many(value: Any, count: int) -> Callable[[Any], Any]:
    """Three nodes' columns, of which one repeats a value."""
    return lambda pa: {
        "id": pa.array(range(count)).cast(pa.string()),
        "g": pa.array(["a", "b"]).take(pa.array(range(count)).cast(pa.int64()).to_numpy() % 2),
        "text": pa.DictionaryArray.from_arrays(
            pa.array(bytearray(4 * count), type=pa.uint8()).cast(pa.int32())[:count], pa.array([value])
        ),
    }


def _plain(value: Any, count: int) -> Callable[[Any], Any]:
    """As `_many`, of a column that is no dictionary to pandas."""

    def make(pa: Any) -> Any:
        scalar = pa.scalar(value)
        batch = pa.table({"id": pa.array(map(str, range(100))), "text": pa.repeat(scalar, 100)})
        return pa.concat_tables([batch] * (count // 100))

    return make


def _npy(shape: str, descr: str = "'<i8'", body: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def _zip(members: dict[str, bytes], *, claims: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive; with `claims` its directory and headers give that many bytes for each member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    data = bytearray(buffer.getvalue())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.find(mark)
        while claims is not None and start >= 0:
            data[start + at : start + at + 4] = struct.pack("<I", claims)
            start = data.find(mark, start + 4)
    return bytes(data)


def _zeros(member: str, gigabytes: float, **others: bytes) -> Make:
    """An archive with one member of zeros."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in others.items():
                archive.writestr(name, content)
            with archive.open(member, "w", force_zip64=True) as file:
                file.write(_npy(f"({int(gigabytes * 2**27)},)"))
                for _ in range(int(gigabytes * 1024)):
                    file.write(bytes(2**20))

    return write


def _gzip(piece: bytes, times: int, first: bytes = b"") -> bytes:
    """A gzip file of several members, one after the other."""
    return gzip.compress(first) + gzip.compress(piece) * times


_WORKBOOK = (
    '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>{}</sheets></workbook>'
)
_RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CONTENT = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" '
    'ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>'
)


def _xlsx(
    cells: str,
    *,
    strings: str = "",
    sheets: int = 1,
    dimension: str = "",
    name: str = "nodes",
    merged: str = "",
    **zipped: Any,
) -> bytes:
    """A workbook of one sheet (or several alike) with the rows `cells`, of edges.xlsx or nodes.xlsx."""
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"{f'<dimension ref={dimension!r}/>' if dimension else ''}<sheetData>{cells}</sheetData>{merged}</worksheet>"
    ).replace("'", '"')
    members = {
        "[Content_Types].xml": _CONTENT,
        "_rels/.rels": _RELATIONS.format(
            f'<Relationship Id="r1" Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/>'
        ),
        "xl/workbook.xml": _WORKBOOK.format(
            "".join(f'<sheet name="{name}{i or ""}" sheetId="{i + 1}" r:id="s{i}"/>' for i in range(sheets))
        ),
        "xl/_rels/workbook.xml.rels": _RELATIONS.format(
            "".join(
                f'<Relationship Id="s{i}" Type="{_RELATION}/worksheet" Target="worksheets/s{i}.xml"/>'
                for i in range(sheets)
            )
            + (f'<Relationship Id="t" Type="{_RELATION}/sharedStrings" Target="sharedStrings.xml"/>' if strings else "")
        ),
        **{f"xl/worksheets/s{i}.xml": sheet for i in range(sheets)},
    }
    if strings:
        members["xl/sharedStrings.xml"] = (
            f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{strings}</sst>'
        )
    return _zip({n: m.encode() for n, m in members.items()}, **zipped)


def _row(number: int, *cells: str, first: str = "A") -> str:
    inner = "".join(
        f'<c r="{chr(ord(first) + i)}{number}" t="inlineStr"><is><t>{c}</t></is></c>' for i, c in enumerate(cells)
    )
    return f'<row r="{number}">{inner}</row>'


_ROWS = _row(1, "id", "g") + _row(2, "1", "a") + _row(3, "2", "b") + _row(4, "3", "a")


def _torch_file(make: Callable[[Any], Any], **options: Any) -> Make:
    def write(path: Path) -> None:
        import torch

        torch.save(make(torch), path, **options)

    return write


class _Exploding:
    """Unpickled, it would leave a file behind."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # A path of a socket is at most 108 bytes long.
    here = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.fchdir(here)


def _directory(path: Path) -> None:
    path.mkdir()


def _link(target: str) -> Make:
    return lambda path: path.symlink_to(target)


def _elsewhere(content: str | bytes) -> Make:
    """A link to a file beside the folder's, that somebody else may own."""

    def write(path: Path) -> None:
        there = Path(tempfile.mkdtemp(prefix="elsewhere-", dir=path.parent.parent)) / f"other-{path.name}"
        there.write_bytes(content.encode() if isinstance(content, str) else content)
        path.symlink_to(there)

    return write


# The trials


def _nodes(name: str, trials: dict[str, Any], reads: Any = None) -> list[Trial]:
    """Files of nodes beside the plain edges; a pair gives what must be read."""
    return [
        Trial(
            what,
            {name: made[0] if isinstance(made, tuple) else made, "edges.csv": _EDGES},
            made[1] if isinstance(made, tuple) else reads,
        )
        for what, made in trials.items()
    ]


def _parquet() -> list[Trial]:
    def prefixes(pa: Any) -> Any:
        return {"id": [str(i) for i in range(20_000)], "text": ["x" * 60_000 + str(i) for i in range(20_000)]}

    def small(**columns: Any) -> Callable[[Any], Any]:
        return lambda pa: {"id": ["1", "2", "3"], "g": ["a", "b", "a"]} | {n: make(pa) for n, make in columns.items()}

    def cut(path: Path) -> None:
        _frame(small())(path)
        path.write_bytes(path.read_bytes()[:-20])

    def footer(path: Path) -> None:
        _frame(small())(path)
        data = bytearray(path.read_bytes())
        data[-8:-4] = struct.pack("<I", 2**31 - 1)
        path.write_bytes(data)

    def flipped(path: Path) -> None:
        _frame(small())(path)
        data = bytearray(path.read_bytes())
        for at in range(20, len(data) - 8, 37):
            data[at] ^= 0xFF
        path.write_bytes(data)

    return _nodes(
        "nodes.parquet",
        {
            "Parquet: a category of 100 KB in a million rows": _frame(_many("x" * 100_000, 1_000_000)),
            "Parquet: a text of 100 KB in 20,000 rows": _frame(_plain("x" * 100_000, 20_000)),
            "Parquet: a text of 500 KB in 5,000 rows": _frame(_plain("x" * 500_000, 5_000), row_group_size=5_000),
            "Parquet: bytes of 100 KB in 20,000 rows": _frame(_plain(b"x" * 100_000, 20_000)),
            "Parquet: long strings of 64 bits": _frame(
                lambda pa: _plain("x" * 100_000, 20_000)(pa).cast(
                    pa.schema([("id", pa.string()), ("text", pa.large_string())])
                )
            ),
            "Parquet: bytes of fixed width": _frame(
                lambda pa: pa.concat_tables(
                    [pa.table({"id": ["1"] * 100, "b": pa.array([b"x" * 100_000] * 100, pa.binary(100_000))})] * 100
                )
            ),
            "Parquet: prefixes that repeat": _frame(
                prefixes, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}, compression="zstd"
            ),
            "Parquet: a hundred million empty cells": _frame(
                lambda pa: pa.concat_tables([pa.table({"id": pa.nulls(1_000_000, pa.int64())})] * 100)
            ),
            "Parquet: the same number a hundred million times": _frame(
                lambda pa: pa.concat_tables([pa.table({"id": pa.repeat(7, 1_000_000)})] * 100)
            ),
            "Parquet: truth values a hundred million times": _frame(
                lambda pa: pa.concat_tables([pa.table({"id": pa.repeat(True, 1_000_000)})] * 100)
            ),
            "Parquet: 200 columns of a million equal numbers": _frame(
                lambda pa: pa.table({f"c{i}": pa.repeat(7, 200_000) for i in range(1_000)})
            ),
            "Parquet: numbers that are text of 20 bytes, just within": (
                _frame(
                    lambda pa: {
                        "id": pa.array(range(1_000_000)),
                        **{f"c{i}": pa.repeat(-(2**62), 1_000_000) for i in range(25)},
                    }
                ),
                "either",
            ),
            "Parquet: 30,000 columns": _frame(lambda pa: {f"c{i}": [1, 2, 3] for i in range(30_000)}),
            "Parquet: 2,000 groups of one row": (
                _frame(lambda pa: {"id": [str(i) for i in range(1, 2001)], "g": ["a", "b"] * 1000}, row_group_size=1),
                (2000, 2),
            ),
            "Parquet: lists": _frame(small(x=lambda pa: [[1], [2], [3]])),
            "Parquet: a list of ten million numbers in a cell": _frame(
                small(x=lambda pa: pa.array([[1] * 1_000_000, [], []]))
            ),
            "Parquet: records": _frame(small(x=lambda pa: [{"a": 1}] * 3)),
            "Parquet: maps": _frame(small(x=lambda pa: pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int8())))),
            "Parquet: lists 90 deep": _frame(small(x=lambda pa: _deep(pa, 90))),
            "Parquet: cut off": cut,
            "Parquet: a footer of 2 GB": footer,
            "Parquet: bytes flipped": (flipped, "either"),
            "Parquet: a text file": "PAR1\n" + _NODES + "PAR1",
            "Parquet: bytes that are no text": _frame(small(g=lambda pa: [b"\xff", b"\xfe", b"\xff"])),
            "Parquet: zeros in text": (_frame(small(g=lambda pa: ["a\0b", "b", "b"])), "either"),
            "Parquet: decimals, days and durations": (
                _frame(
                    small(
                        d=lambda pa: pa.array([1, 2, 3]).cast(pa.decimal128(38, 2)),
                        t=lambda pa: pa.array([-(2**62), 0, 2**62], pa.timestamp("us")),
                        l=lambda pa: pa.array([-(2**62), 0, 2**62], pa.duration("us")),
                    )
                ),
                "either",
            ),
            "Parquet: half floats": (_frame(small(h=lambda pa: pa.array([1.0, 2.0, 3.0], pa.float16()))), (3, 2)),
            "Parquet: a column twice": _frame(
                lambda pa: pa.Table.from_arrays([pa.array(["1"]), pa.array(["2"])], names=["id", "id"])
            ),
            "Parquet: a column that turns text round": (
                _frame(small(**{"\u202eevil\x1b[2J": lambda pa: ["a", "b", "a"]})),
                (3, 2),
            ),
            "Parquet: metadata of pandas that is no JSON": (
                _frame(lambda pa: pa.table(small()(pa)).replace_schema_metadata({"pandas": "{"})),
                "either",
            ),
        },
    )


def _deep(pa: Any, depth: int) -> Any:
    kind = pa.int8()
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.nulls(3, kind)


def _arrays() -> list[Trial]:
    matrix = {
        "format.npy": _npy("()", "'|S3'", b"coo"),
        "shape.npy": _npy("(2,)", body=struct.pack("<2q", 3, 3)),
        "row.npy": _npy("(1,)", body=struct.pack("<q", 0)),
        "col.npy": _npy("(1,)", body=struct.pack("<q", 1)),
        "data.npy": _npy("(1,)", body=struct.pack("<q", 1)),
    }

    def changed(**members: bytes) -> bytes:
        return _zip(matrix | {f"{n}.npy": m for n, m in members.items()})

    archives: dict[str, Any] = {
        "npz: zeros of 1 GB": _zeros("data.npy", 1),
        "npz: a member beside the matrix of 1 GB": _zeros("other.npy", 1, **matrix),
        "npz: claims of 10^15 numbers": changed(data=_npy("(1000000000000000,)")),
        "npz: a shape beyond 64 bits": changed(data=_npy("(4294967296, 4294967296)")),
        "npz: a negative shape": changed(data=_npy("(-5,)")),
        "npz: a text of 2 GB": changed(data=_npy("(1,)", "'|S2000000000'")),
        "npz: numbers of half a GB": changed(data=_npy("(67000000,)")),
        "npz: objects": changed(data=_npy("(1,)", "'|O'", pickle.dumps(_Exploding()))),
        "npz: a matrix of 10^15 rows": changed(shape=_npy("(2,)", body=struct.pack("<2q", 10**15, 10**15))),
        "npz: a header that is no header": changed(data=b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535),
        "npz: a header of 4 GB": changed(data=b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100),
        "npz: 20,000 members": _later(lambda: _zip(matrix | {f"m{i}.npy": _npy("(0,)") for i in range(20_000)})),
        "npz: a directory that says 100 bytes": _later(lambda: _zip({"data.npy": bytes(2**29)}, claims=100)),
        "npz: cut off": _zip(matrix)[:200],
        "npz: packed by LZMA": _zip(matrix, method=zipfile.ZIP_LZMA),
        "npz: names that turn text round": _zip({"\u202e.npy": _npy("(0,)")}),
    }
    out = [
        Trial(
            n,
            {"edges.npz": m, "nodes.csv": _NODES},
            "either" if "beside" in n or "20,000" in n or "LZMA" in n else None,
        )
        for n, m in archives.items()
    ]
    plain = _npy("(3,)", body=struct.pack("<3q", 0, 1, 0))
    vectors = {
        "npy: claims of 10^15 numbers": _npy("(2, 500000000000000)"),
        "npy: claims of 100 million numbers": _npy("(2, 100000000)"),
        "npy: a hole of 10 GB": lambda path: _sparse_file(path, _npy("(2, 625000000)"), 10 * 10**9),
        "npy: objects": _npy("(2, 1)", "'|O'", pickle.dumps(_Exploding())),
        "npy: a record of 2 GB": _npy("(2, 1)", "[('a', '|V2000000000')]"),
        "npy: a zip": _zip({"a": b"b"}),
        "npy: version 9": b"\x93NUMPY\x09\x00" + bytes(100),
        "npy: negative numbers": _npy("(2, 1)", body=struct.pack("<2q", -1, 1)),
    }
    return out + [Trial(n, {"g_edges.npy": m, "g_sens.npy": plain}) for n, m in vectors.items()]


def _later(make: Callable[[], str | bytes]) -> Make:
    """What is large, made when it is written."""

    def write(path: Path) -> None:
        content = make()
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def _sparse_file(path: Path, head: bytes, size: int) -> None:
    """A file of a size most of which is a hole, and takes no room."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def _matrices() -> list[Trial]:
    head = "%%MatrixMarket matrix coordinate pattern general\n"
    made: dict[str, Any] = {
        "mtx: 10^14 rows": head + "100000000000000 100000000000000 1\n1 2\n",
        "mtx: 10^15 entries": head + "3 3 100000000000000\n1 2\n",
        "mtx: a dense matrix of 10^9 rows": head.replace("coordinate pattern", "array integer")
        + "1000000000 1000000000\n1\n",
        "mtx: digits without end": head + "9" * 1_000_000 + " 3 1\n1 2\n",
        "mtx: an entry of a million digits": head + "3 3 1\n" + "1" * 1_000_000 + " 2\n",
        "mtx: a line of 100 MB": _later(lambda: head + "3 3 1\n" + "1 " * 50_000_000),
        "mtx: comments of 100 MB": _later(lambda: head + "%" + "x" * 100_000_000 + "\n3 3 1\n1 2\n"),
        "mtx: a million comments": _later(lambda: head + "%\n" * 5_000_000 + "3 3 1\n1 2\n"),
        "mtx: zeros": head + "3 3 1\n\0\0\0\0\n",
        "mtx: a name that turns text round": head.replace("general", "\u202egeneral") + "3 3 1\n1 2\n",
    }
    out = [
        Trial(
            n,
            {"g.mtx": m, "nodes.csv": _NODES},
            (3, 1) if "comments" in n and "million" in n else "either" if "comments" in n else None,
        )
        for n, m in made.items()
    ]
    packed = _gzip(b"1 2\n" * 2**20, 200, (head + "3 3 209715200\n").encode())
    return [*out, Trial("mtx: a gzip bomb", {"g.mtx.gz": packed, "nodes.csv": _NODES})]


def _workbooks() -> list[Trial]:
    corner = f'{_ROWS}<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    shared = '<row r="{0}"><c r="A{0}" t="s"><v>0</v></c><c r="B{0}" t="s"><v>0</v></c></row>'
    made: dict[str, Any] = {
        "xlsx: a cell in the last corner": _later(lambda: _xlsx(corner)),
        "xlsx: a cell in the last corner, in small letters": _later(
            lambda: _xlsx(corner.replace("XFD1048576", "xfd1048576"))
        ),
        "xlsx: a cell beyond the last corner": _later(lambda: _xlsx(corner.replace("XFD1048576", "ZZZZZZ999999999"))),
        "xlsx: a cell in the last row": _later(lambda: _xlsx(corner.replace("XFD1048576", "B1048576"))),
        "xlsx: a row with a high number, cells without one": _xlsx(
            f'{_ROWS}<row r="1048576">{"<c><v>1</v></c>" * 16_000}</row>'
        ),
        "xlsx: a million empty columns": _later(
            lambda: _xlsx(_row(1, "id", "g") + f'<row r="2">{"<c/>" * 1_000_000}</row>')
        ),
        "xlsx: a million columns": _later(lambda: _xlsx(f'<row r="1">{"<c><v>1</v></c>" * 1_000_000}</row>')),
        "xlsx: an extent of everything": (_xlsx(_ROWS, dimension="A1:XFD1048576"), "either"),
        "xlsx: an extent beyond everything": (_xlsx(_ROWS, dimension="A1:ZZZZZZ99999999999"), "either"),
        "xlsx: a text of 1 MB in 5,000 cells": _xlsx(
            "".join(shared.format(i) for i in range(1, 5001)), strings=f"<si><t>{'x' * 2**20}</t></si>"
        ),
        "xlsx: a text of 1 MB in pieces": _xlsx(
            "".join(shared.format(i) for i in range(1, 5001)),
            strings=f"<si>{f'<r><t>{chr(120) * 1000}</t></r>' * 1000}</si>",
        ),
        "xlsx: a text of 1 MB under a prefix": _xlsx(
            "".join(shared.format(i) for i in range(1, 5001)),
            strings=f"<x:si xmlns:x='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><x:t>{'x' * 2**20}</x:t></x:si>",
        ),
        "xlsx: texts of 700 MB": _later(lambda: _xlsx(_ROWS, strings="<si><t>" + "x" * 700_000_000 + "</t></si>")),
        "xlsx: a directory that says 100 bytes": _later(lambda: _xlsx(_ROWS + "<row/>" * 100_000_000, claims=100)),
        "xlsx: ten million empty rows": _later(lambda: _xlsx(_ROWS + "<row/>" * 10_000_000)),
        "xlsx: 3,000 sheets": _later(lambda: _xlsx(_ROWS, sheets=3000)),
        "xlsx: all cells merged": _xlsx(
            _ROWS, merged='<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
        ),
        "xlsx: a hundred thousand merged cells": _xlsx(
            _ROWS, merged="<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 100_000 + "</mergeCells>"
        ),
        "xlsx: an entity that nothing defines": _later(lambda: _xlsx(_row(1, "id", "&a;") + _row(2, "1", "a"))),
        "xlsx: elements 100,000 deep": (_later(lambda: _xlsx(_ROWS + "<row>" * 100_000)), "either"),
        "xlsx: packed by LZMA": _later(lambda: _xlsx(_ROWS, method=zipfile.ZIP_LZMA)),
        "xlsx: an empty archive": _zip({}),
        "xlsx: no sheet": _zip({"xl/workbook.xml": b"<workbook/>"}),
        "xlsx: cut off": _later(lambda: _xlsx(_ROWS)[:400]),
        "xlsx: an old workbook": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096),
        "xlsx: a binary workbook": _zip({"xl/workbook.bin": bytes(1000), "[Content_Types].xml": _CONTENT.encode()}),
        "xlsx: a sheet whose name turns text round": (_xlsx(_ROWS, name="\u202enodes\u2066"), "either"),
        "xlsx: a number of a million digits": _xlsx(
            _row(1, "id", "g") + f'<row r="2"><c><v>{"9" * 1_000_000}</v></c><c><v>1</v></c></row>'
        ),
        "xlsx: read right": (_xlsx(_ROWS), (3, 2)),
    }
    return _nodes("nodes.xlsx", made)


def _xml() -> list[Trial]:
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    graph = '<graph edgedefault="undirected"><node id="1"/><node id="2"/><edge source="1" target="2"/></graph>'
    bomb = (
        '<!DOCTYPE l [<!ENTITY a "ha">'
        + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 20}">' for i in range(9))
        + "]>"
    )
    made: dict[str, Any] = {
        "GraphML: entities that multiply": bomb + f"{head}&j;</graphml>",
        "GraphML: an entity from outside": '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
        + head
        + "&a;</graphml>",
        "GraphML: an entity from the network": '<!DOCTYPE l SYSTEM "http://127.0.0.1:9/x.dtd">'
        + head
        + graph
        + "</graphml>",
        "GraphML: elements a million deep": head + "<a>" * 1_000_000 + "</a>" * 1_000_000 + graph + "</graphml>",
        "GraphML: elements a million deep, never closed": head + "<graph>" * 1_000_000,
        "GraphML: graphs 100,000 deep": _later(
            lambda: head + "<graph>" * 100_000 + "</graph>" * 100_000 + "</graphml>"
        ),
        "GraphML: fifty million empty elements": lambda path: path.write_bytes(
            head.encode() + b"<a/>" * 50_000_000 + graph.encode() + b"</graphml>"
        ),
        "GraphML: an element of a million attributes": head
        + "<a "
        + " ".join(f'a{i}=""' for i in range(1_000_000))
        + "/>"
        + graph
        + "</graphml>",
        "GraphML: an attribute of 50 MB": _later(lambda: head + f'<a b="{"x" * 50_000_000}"/>' + graph + "</graphml>"),
        "GraphML: a text of 50 MB": _later(lambda: head + "x" * 50_000_000 + graph + "</graphml>"),
        "GraphML: a comment of 50 MB": _later(lambda: head + f"<!--{'x' * 50_000_000}-->" + graph + "</graphml>"),
        "GraphML: a name of 50 MB": _later(lambda: head + f"<{'x' * 50_000_000}/>" + graph + "</graphml>"),
        "GraphML: 100,000 namespaces": head
        + "<a "
        + " ".join(f'xmlns:a{i}="u{i}"' for i in range(100_000))
        + "/>"
        + graph
        + "</graphml>",
        "GraphML: a start that never ends": _later(lambda: "<" + "x" * 20_000_000),
        "GraphML: 300,000 keys": head
        + "".join(f'<key id="k{i}" for="node" attr.name="n{i}" attr.type="int"/>' for i in range(300_000))
        + graph
        + "</graphml>",
        "GraphML: 30,000 attributes of a node": head
        + "".join(f'<key id="k{i}" for="node" attr.name="n{i}" attr.type="int"/>' for i in range(30_000))
        + '<graph><node id="1">'
        + "".join(f'<data key="k{i}">1</data>' for i in range(30_000))
        + '</node><node id="2"/><edge source="1" target="2"/></graph></graphml>',
        "GraphML: a number of a million digits": head
        + '<key id="k" for="node" attr.name="n" attr.type="int"/><graph><node id="1"><data key="k">'
        + "9" * 1_000_000
        + '</data></node><node id="2"/><edge source="1" target="2"/></graph></graphml>',
        "GraphML: an id that turns text round": f'{head}<graph><node id="&#x202e;1"/><node id="2"/><edge source="&#x202e;1" target="3"/></graph></graphml>',
        "GraphML: zeros": head.encode() + b"\0" * 1000,
        "GraphML: an unknown encoding": '<?xml version="1.0" encoding="x-\u00e4"?>' + head + graph + "</graphml>",
    }
    slack = (
        "million deep",
        "empty elements",
        "attributes",
        "attribute of",
        "text of",
        "comment of",
        "name of",
        "namespaces",
        "keys",
        "digits",
    )
    out = [
        Trial(n, {"g.graphml": m}, "either" if any(s in n for s in slack) and "never" not in n else None)
        for n, m in made.items()
    ]
    gexf = '<gexf xmlns="http://www.gexf.net/1.2draft"><graph>{}</graph></gexf>'
    out += [
        Trial("GEXF: entities that multiply", {"g.gexf": bomb + gexf.format("&j;")}),
        Trial(
            "GEXF: nodes in nodes 50,000 deep",
            {
                "g.gexf": gexf.format(
                    "<nodes>" + '<node id="1"><nodes>' * 50_000 + "</nodes></node>" * 50_000 + "</nodes>"
                )
            },
        ),
        Trial(
            "GraphML: as many empty elements as half the share allows",
            {"g.graphml": _later(lambda: head + "<a/>" * (LIMIT // 48) + graph + "</graphml>")},
            (2, 1),
            times=3,
        ),
        Trial("GraphML: a gzip bomb", {"g.graphml.gz": _gzip(b"<a/>" * 2**18, 1000, head.encode())}),
        Trial("XML: a name without meaning", {"g.xml": "<graphml>" + "<" * 1_000_000}),
    ]
    return out


def _json_graphs() -> list[Trial]:
    def written(nodes: str = '[{"id":1},{"id":2}]', links: str = '[{"source":1,"target":2}]', more: str = "") -> str:
        return f'{{"nodes":{nodes},"links":{links}{more}}}'

    made: dict[str, Any] = {
        "JSON: lists a million deep": written(more=',"x":' + "[" * 1_000_000 + "]" * 1_000_000),
        "JSON: objects 100,000 deep": _later(lambda: written(more=',"x":' + '{"a":' * 100_000 + "1" + "}" * 100_000)),
        "JSON: a number of a million digits": written('[{"id":' + "1" * 1_000_000 + "}]"),
        "JSON: a number of 10^999999999": written('[{"id":1e999999999},{"id":2}]'),
        "JSON: not a number": written('[{"id":NaN},{"id":2}]'),
        "JSON: eighty million empty lists": _later(lambda: written(more=',"x":[' + "[]," * 80_000_000 + "[]]")),
        "JSON: forty million empty objects": _later(lambda: written(more=',"x":[' + "{}," * 40_000_000 + "{}]")),
        "JSON: a text of 100 MB": _later(lambda: written(more=f',"x":"{"x" * 100_000_000}"')),
        "JSON: 20,000 nodes with a key each": written(
            "[" + ",".join(f'{{"id":{i},"k{i}":1}}' for i in range(20_000)) + "]", '[{"source":0,"target":1}]'
        ),
        "JSON: half a character": written('[{"id":"\\ud800"},{"id":"2"}]'),
        "JSON: a key twice": written('[{"id":1,"id":2}]'),
        "JSON: escapes without end": written('[{"id":"' + "\\u0041" * 3_000_000 + '"}]'),
        "JSON: an id that turns text round": written(
            '[{"id":"\\u202e1"},{"id":"2"}]', '[{"source":"\\u202e1","target":"3"}]'
        ),
        "JSON: an attribute that turns text round": (
            written(
                "[" + ",".join(f'{{"id":{i},"\\u202eg\\u001b[2J":"{"ab"[i % 2]}\\u2066"}}' for i in range(4)) + "]",
                '[{"source":0,"target":1}]',
            ),
            (4, 1),
        ),
        "JSON: zeros": b'{"nodes":\0\0\0\0',
        "JSON: blanks of 100 MB": _later(lambda: written(more=" " * 100_000_000)),
        "JSON: links to lists": written(links='[{"source":[1],"target":{"id":{}}}]'),
        "JSON: indices of 10^18": written('[{"a":1},{"a":1}]', '[{"source":0,"target":1000000000000000000}]'),
    }
    slack = ("deep", "empty", "100 MB", "key each")
    trials = [
        Trial(
            n,
            {"g.json": m[0] if isinstance(m, tuple) else m},
            m[1] if isinstance(m, tuple) else "either" if any(s in n for s in slack) else None,
        )
        for n, m in made.items()
    ]
    return [*trials, *(_within(f"JSON: {what},", kind, written) for what, kind in (("lists", "[]"), ("objects", "{}")))]


def _within(what: str, kind: str, written: Callable[..., str]) -> Trial:
    """Half of what such a file may have, a sixth of the limit, in the memory that a graph of that size takes."""
    times = LIMIT // 12 // 3
    made = _later(lambda: written(more=f',"x":[{f"{kind}," * times}{kind}]'))
    return Trial(f"{what} as many as half the share allows", {"g.json": made}, (2, 1), times=3)


def _other_graphs() -> list[Trial]:
    gml = "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] {} ]"
    pajek = '*Vertices 2\n1 "a"\n2 "b"\n*Edges\n1 2\n'
    asym = "% asym unweighted\n1 2\n2 3\n"
    many = {
        "GML: lists 50,000 deep": {"g.gml": gml.format("a [ " * 50_000 + "] " * 50_000)},
        "GML: a text of 2 MB": {"g.gml": gml.format(f'x "{"y" * 2_000_000}"')},
        "GML: a mark that is never closed, 300,000 lines": {"g.gml": gml.format('x "' + "y\n" * 300_000)},
        "GML: a text of 300,000 lines": {"g.gml": gml.format('x "' + "y\n" * 300_000 + '"')},
        "GML: comments without end": {"g.gml": "#" * 5_000_000 + "\n" + gml.format("")},
        "GML: blanks of 5 MB": {"g.gml": gml.format(" " * 5_000_000)},
        "GML: a name of 2 MB": {"g.gml": gml.format("x" * 2_000_000 + " 1")},
        "GML: a number of a million digits": {"g.gml": gml.format("x " + "1" * 1_000_000)},
        "GML: an entity of 10^9": {"g.gml": gml.format('x "&#999999999;"')},
        "GML: 100,000 marks in a line": {"g.gml": gml.format('x "a" ' * 100_000)},
        "GML: an id that turns text round": {"g.gml": gml.format('x "\u202e\x1b[2J"')},
        "Pajek: 10^11 vertices": {"g.net": pajek.replace("Vertices 2", "Vertices 100000000000")},
        "Pajek: a line of 5 MB": {"g.net": pajek + "1 " * 2_500_000 + "\n"},
        "Pajek: a label of 5 MB": {"g.net": f'*Vertices 2\n1 "{"a" * 5_000_000}"\n2 "b"\n*Edges\n1 2\n'},
        "Pajek: 200,000 marks in a line": {"g.net": "*Vertices 2\n1 " + '"' * 200_001 + "\n"},
        "Pajek: blanks and marks": {"g.net": "*Vertices 2\n1 " + ' "a"' * 200_000 + ' "\n'},
        "Pajek: words of letters and a mark": {"g.net": "*Vertices 2\n1 " + "a " * 500_000 + 'a"\n'},
        "Pajek: a matrix of a row too long": {"g.net": "*Vertices 2\n*Matrix\n" + "1 " * 1_000_000 + "\n"},
        "Pajek: stars without end": {"g.net": "*" * 5_000_000},
        "Pajek: a partition of 10^9": {"g.net": pajek, "g.clu": "*Vertices 1000000000\n1\n"},
        "Pajek: a comment that never ends": {"g.net": pajek + "/*" * 1_000_000 + "\n"},
        "Pajek: a label that turns text round": {"g.net": '*Vertices 2\n1 "\u202ea"\n2 "b"\n*Edges\n1 9\n'},
        "KONECT: a line of 50 MB": {"out.g": asym + "1 " * 25_000_000, "nodes.csv": _NODES},
        "KONECT: node 10^18": {"out.g": asym + "1 1000000000000000000\n"},
        "KONECT: zeros": {"out.g": asym.encode() + b"\0" * 1000},
        "edge list: a line of 50 MB": {"g.txt": "1 2\n" + "3" * 50_000_000, "nodes.csv": _NODES},
        "edge list: comments of 20 MB": {"g.txt": "#" * 20_000_000 + "\n1 2\n", "nodes.csv": _NODES},
        "NCOL: names that turn text round": {"g.ncol": "\u202e1 2\n", "nodes.csv": _NODES},
        "Cytoscape: a SIF": {"g.sif": "1 pp 2\n" * 100_000},
    }
    slack = (
        "text of",
        "blanks",
        "comments",
        "name of",
        "entity",
        "label of",
        "marks in a line",
        "turns text round",
        "deep",
        "digits",
        "never ends",
        "words",
        "line of",
        "node 10",
    )
    return [Trial(n, files, "either" if any(s in n for s in slack) else None) for n, files in many.items()]


def _tables() -> list[Trial]:
    big = 2 * 2**20
    made: dict[str, Any] = {
        "CSV: a cell of 2 MB": _NODES + f"4,{'x' * big}\n",
        "CSV: a cell of 2 MB in the first row": f"id,g\n1,{'x' * big}\n2,b\n3,a\n",
        "CSV: a cell of 2 MB in marks": f'id,g\n1,"{"x" * big}"\n2,b\n3,a\n',
        "CSV: a cell of 2 MB of marks": f'id,g\n1,"{chr(34) * big}"\n2,b\n3,a\n',
        "CSV: a cell of 2 MB of blanks": f"id,g\n1,{' ' * big}x\n2,b\n3,a\n",
        "CSV: a cell of 2 MB of blanks and tabs": "id\tg\n1\t" + " " * big + "x\n2\tb\n3\ta\n",
        "CSV: a cell of 2 MB of zeros": f"id,g\n1,{'0' * big}\n2,1\n3,2\n",
        "CSV: a cell of 2 MB of digits": f"id,g\n1,{'9' * big}\n2,1\n3,2\n",
        "CSV: a cell of 2 MB of dashes": f"id,g\n1,{'-' * big}\n2,b\n3,a\n",
        "CSV: a cell of 2 MB of letters and points": f"id,g\n1,{'a.' * (big // 2)}\n2,b\n3,a\n",
        "CSV: a cell of 2 MB of signs": f"id,g\n1,{'+-=|' * (big // 4)}\n2,b\n3,a\n",
        "CSV: a cell of 2 MB of brackets": f"id,g\n1,{'[' * big}\n2,b\n3,a\n",
        "CSV: a cell of 2 MB of line ends": f'id,g\n1,"{chr(10) * big}"\n2,b\n3,a\n',
        "CSV: a cell of 2 MB in a far row": "id,g\n"
        + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(1, 60_000))
        + f"60000,{'x' * big}\n",
        "CSV: an id of 2 MB": f"id,g\n{'x' * big},a\n1,a\n2,b\n3,a\n",
        "CSV: a name of 2 MB": f"id,{'g' * big}\n1,a\n2,b\n3,a\n",
        "CSV: 200 cells of 100 KB": _later(
            lambda: "id,g\n1,a\n2,b\n3,a\n" + "".join(f"x{i},{'x' * 100_000}\n" for i in range(200))
        ),
        "CSV: a million columns": "id" + ",g" * 1_000_000 + "\n",
        "CSV: a million columns of different names": "id," + ",".join(f"c{i}" for i in range(1_000_000)) + "\n1\n",
        "CSV: a million empty columns": "id,g" + "," * 1_000_000 + "\n1,a\n",
        "CSV: a row of a million cells": _NODES + "4" + ",x" * 1_000_000 + "\n",
        "CSV: a row of a million blanks": _NODES.replace(",", " ") + "4 " + "x " * 500_000 + "\n",
        "CSV: a line of 100 MB": _later(lambda: "id,g\n" + "x" * 100_000_000),
        "CSV: a first line of 100 MB": _later(lambda: "x" * 100_000_000),
        "CSV: a first line of 20 MB of commas": _later(lambda: "," * 20_000_000),
        "CSV: a comment of 100 MB": _later(lambda: "#" * 100_000_000 + "\n" + _NODES),
        "CSV: five million comments": _later(lambda: "#\n" * 5_000_000 + _NODES),
        "CSV: ends of lines of 30 MB": _later(lambda: _NODES + "\n" * 30_000_000),
        "CSV: carriage returns of 30 MB": _later(lambda: _NODES + "\r" * 30_000_000),
        "CSV: empty rows of 20 MB": _later(lambda: _NODES + ",\n" * 10_000_000),
        "CSV: zeros": "id,g\n1,a\0\n2,b\n3,a\n",
        "CSV: zeros far down": "id,g\n1,a\n2,b\n3,a\n" + "".join(f"x{i},b\n" for i in range(50_000)) + "y\0z,a\n",
        "CSV: nothing but zeros, 100 MB": lambda path: _sparse_file(path, b"", 100_000_000),
        "CSV: a hole behind the header, 1 GB": lambda path: _sparse_file(path, b"id,g\n1,a\n", 2**30),
        "CSV: a mark that is never closed, 5 MB": _later(lambda: 'id,g\n1,"a\n' + "2,b\n" * 1_200_000),
        "CSV: marks that are never closed, by turns": _later(lambda: "id,g\n" + '1,"a\n2,b"\n' * 100_000),
        "CSV: marks escaped by a backslash": _later(lambda: "id,g\n" + '1,"a\\"b"\n' * 100_000),
        "CSV: a byte that is no text": b"id,g\n1,\xff\n2,b\n3,a\n",
        "CSV: a byte that is no text far down": b"id,g\n" + b"1,b\n" * 500_000 + b"\xff,a\n",
        "CSV: text of 32 bits": _NODES.encode("utf-32"),
        "CSV: a name that turns text round": "id,\u202eg\u2066,h\n1,a,x\n2,b,y\n3,a,x\n",
        "CSV: cells that turn text round": "id,g\n1,\u202ea\n2,\x1b[2Jb\n3,\u202ea\n",
        "CSV: ids that turn text round": "id,g\n\u202e1,a\n2,b\n\u20693,a\n",
        "CSV: two columns whose names look alike": "id,g\u202e,g\n1,a,b\n2,b,a\n3,a,b\n",
        "CSV: columns of control characters": "id,\x1b[31m,\x07\n1,a,b\n2,b,a\n3,a,b\n",
        "CSV: a separator of its own": "sep=\x1b\nid\x1bg\n1\x1ba\n2\x1bb\n3\x1ba\n",
        "CSV: 19,000 columns": "id,"
        + ",".join(f"c{i}" for i in range(19_000))
        + "\n"
        + "".join(f"{j}" + ",1" * 19_000 + "\n" for j in (1, 2, 3)),
        "CSV: an edge to 10^400": ("id,g\n1,a\n2,b\n3,a\n" + "9" * 400 + ",b\n", (4, 2)),
    }
    refused = (
        "a million",
        "never closed",
        "escaped",
        "no text",
        "32 bits",
        "ids that",
        "zeros, 100",
        "far down, zeros",
    )
    out = []
    for n, m in made.items():
        reads: Any = None if any(s in n for s in refused) else "either"
        content, reads = m if isinstance(m, tuple) else (m, reads)
        out.append(Trial(n, {"nodes.csv": content, "edges.csv": _EDGES}, reads))
    ends = {
        "edges: a cell of 2 MB": _EDGES + f"1,{'x' * big}\n",
        "edges: a million columns": "source,target" + ",x" * 1_000_000 + "\n1,2\n",
        "edges: zeros": "source,target\n1,2\n2,3\n" + "\0" * 1_000_000,
        "edges: ids that turn text round": _EDGES + "1,\u202e3\x1b[2J\n",
        "edges: weights of 10^999": "source,target,weight\n1,2,1e999\n2,3,1\n",
        "edges: weights of a million digits": f"source,target,weight\n1,2,{'9' * 1_000_000}\n2,3,1\n",
    }
    return out + [Trial(n, {"nodes.csv": _NODES, "edges.csv": m}) for n, m in ends.items()]


def _packed() -> list[Trial]:
    row = b"9,a\n" * 2**18
    made = {
        "gzip: a bomb of 1 GB": _later(lambda: _gzip(row, 1024, b"id,g\n")),
        "gzip: a line of 1 GB": _later(lambda: _gzip(b"x" * 2**20, 1024, b"id,g\n1,")),
        "gzip: a bomb of zeros": _later(lambda: _gzip(bytes(2**20), 1024)),
        "gzip: in gzip": gzip.compress(gzip.compress(_NODES.encode())),
        "gzip: cut off": gzip.compress(_NODES.encode())[:-9],
        "gzip: a wrong sum": gzip.compress(_NODES.encode())[:-8] + bytes(8),
        "gzip: something behind it": gzip.compress(_NODES.encode()) + b"garbage" * 1000,
        "gzip: a name of 10 MB within": b"\x1f\x8b\x08\x08"
        + bytes(6)
        + b"x" * 10_000_000
        + b"\0"
        + zlib.compress(b"")[2:-4],
        "gzip: a hundred thousand members": gzip.compress(b"id,g\n")
        + gzip.compress(b"") * 100_000
        + gzip.compress(b"1,a\n2,b\n3,a\n"),
        "gzip: no gzip": _NODES.encode(),
    }
    out = [
        Trial(n, {"nodes.csv.gz": m, "edges.csv": _EDGES}, (3, 2) if "hundred thousand" in n else None)
        for n, m in made.items()
    ]
    others = {
        "zip: one that climbs": {"g.zip": _zip({"../../evil.csv": b"x"})},
        "zip: called CSV": {"nodes.csv": _zip({"../evil": b"x"}), "edges.csv": _EDGES},
        "tar: called CSV": {"nodes.csv": b"nodes\0" + bytes(10_000), "edges.csv": _EDGES},
        "xz: a bomb": {"nodes.csv.xz": _later(lambda: lzma.compress(bytes(2**26))), "edges.csv": _EDGES},
        "pickle: called JSON": {"g.json": pickle.dumps(_Exploding())},
        "pickle: beside nothing": {"g.pkl": pickle.dumps(_Exploding())},
    }
    return out + [Trial(n, dict(files)) for n, files in others.items()]


def _specials() -> list[Trial]:
    kinds = {
        "pipe": _fifo,
        "socket": _socket,
        "folder": _directory,
        "device": _link("/dev/zero"),
        "tty": _link("/dev/tty"),
    }
    names = ("nodes.csv", "nodes.csv.gz", "nodes.parquet", "nodes.xlsx")
    out = [
        Trial(f"{kind}: {name}", {name: make, "edges.csv": _EDGES})
        for kind, make in kinds.items()
        for name in (names if kind in ("pipe", "device") else names[:1])
    ]
    graphs = ("g.graphml", "g.json", "g.pt", "g.net", "dataset.yaml", "g.mtx")
    out += [Trial(f"pipe: {name}", {name: _fifo, "nodes.csv": _NODES}) for name in graphs]
    out += [
        Trial(f"pipe: {name}, named", {name: _fifo, "nodes.csv": _NODES, "edges.csv": _EDGES}, spec=name)
        for name in ("x.csv", "g.pt", "g.graphml")
    ]
    out += [
        Trial(
            "pipe: named by a card",
            {"dataset.yaml": "edges: e.csv\nnodes: nodes.csv\n", "e.csv": _fifo, "nodes.csv": _NODES},
        ),
        Trial("device: named by a card", {"dataset.yaml": "edges: /dev/zero\nnodes: nodes.csv\n", "nodes.csv": _NODES}),
        Trial("device: named", {"x.csv": _link("/dev/zero")}, spec="x.csv"),
        Trial("kernel: a file without a size", {"nodes.csv": _link("/proc/self/environ"), "edges.csv": _EDGES}),
    ]
    return out


def _links() -> list[Trial]:
    graph = '<graphml><graph><node id="1"/><node id="2"/><edge source="1" target="2"/></graph></graphml>'
    text = '{"nodes":[{"id":1},{"id":2}],"links":[{"source":1,"target":2}]}'
    net = "*Vertices 2\n*Edges\n1 2\n"
    mtx = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n"
    out = {
        "link: nodes are /etc/passwd": {"nodes.csv": _link("/etc/passwd"), "edges.csv": _EDGES},
        "link: nodes are somebody else's": {"nodes.csv": _elsewhere(_NODES), "edges.csv": _EDGES},
        "link: edges are somebody else's": {"nodes.csv": _NODES, "edges.csv": _elsewhere(_EDGES)},
        "link: packed nodes": {"nodes.csv.gz": _elsewhere(gzip.compress(_NODES.encode())), "edges.csv": _EDGES},
        "link: a graph file": {"g.graphml": _elsewhere(graph)},
        "link: JSON": {"g.json": _elsewhere(text)},
        "link: Pajek": {"g.net": _elsewhere(net)},
        "link: a partition of Pajek's": {"g.net": net, "g_gender.clu": _elsewhere("*Vertices 2\n1\n2\n")},
        "link: a matrix": {"g.mtx": _elsewhere(mtx), "nodes.csv": _NODES},
        "link: KONECT": {"out.g": _elsewhere("% sym unweighted\n1 2\n2 3\n"), "nodes.csv": _NODES},
        "link: an attribute of KONECT's": {
            "out.g": "% sym unweighted\n1 2\n2 3\n",
            "ent.g.person.gender": _elsewhere("a\nb\na\n"),
        },
        "link: a workbook": {"nodes.xlsx": _elsewhere(_xlsx(_ROWS)), "edges.csv": _EDGES},
        "link: a card": {"dataset.yaml": _elsewhere("edges: e.csv\nnodes: n.csv\n"), "e.csv": _EDGES, "n.csv": _NODES},
        "link: a file that a card names": {
            "dataset.yaml": "edges: e.csv\nnodes: n.csv\n",
            "e.csv": _EDGES,
            "n.csv": _elsewhere(_NODES),
        },
        "link: a folder that a card names": {
            "dataset.yaml": "edges: e.csv\nnodes: d/passwd\n",
            "e.csv": _EDGES,
            "d": _link("/etc"),
        },
        "link: up and up": {"nodes.csv": _link("../../../../../../../../etc/passwd"), "edges.csv": _EDGES},
        "link: over another": {"a": _elsewhere(_NODES), "nodes.csv": _link("a"), "edges.csv": _EDGES},
        "link: to itself": {"nodes.csv": _link("nodes.csv"), "edges.csv": _EDGES},
        "link: to nothing": {"nodes.csv": _link("gone.csv"), "edges.csv": _EDGES},
    }
    trials = [Trial(n, dict(files)) for n, files in out.items()]
    return [
        *trials,
        Trial("link: named", {"nodes.csv": _NODES, "edges.csv": _elsewhere(_EDGES)}, spec="edges.csv"),
        Trial("link: within the folder", {"a.data": _NODES, "nodes.csv": _link("a.data"), "edges.csv": _EDGES}, (3, 2)),
    ]


def _names() -> list[Trial]:
    plain = {"nodes.csv": _NODES, "edges.csv": _EDGES}
    hostile = {
        "turned round": "\u202efdp.\u2066x",
        "a line's end": "a\nuge: all is well",
        "an escape": "a\x1b[2J\x1b[1;1Hb",
        "a bell": "\x07\x08\x7f",
        "no text": os.fsdecode(b"\xff\xfe"),
        "quotes": "'\"`$(touch exploded)`;",
        "braces": "{0}{__class__}%s%n",
        "options": "--write",
        "markup": "<script>alert(1)",
        "blanks": " \t ",
        "a separator of lines": "a\u2028b\u2029c",
        "long": "x" * 240,
        "marks that combine": "a" + "\u0301" * 60,
        "nothing to see": "\u200b\u2060\ufeff",
    }
    out = []
    for what, name in hostile.items():
        out += [
            Trial(f"name: a folder, {what}", {f"{name}/{f}": c for f, c in plain.items()}, (3, 2), spec=name),
            Trial(f"name: a file beside the graph, {what}", {**plain, name: "x"}, (3, 2)),
            Trial(f"name: a graph file, {what}", {f"{name[:200]}.graphml": "<graphml><x/></graphml>"}),
            Trial(f"name: a table alone, {what}", {f"{name[:200]}.csv": "a,b\n1,2\n"}),
        ]
    return [
        *out,
        Trial("name: a graph of the folder's that turns text round", dict(plain), spec=".:\u202e\x1b"),
        Trial("name: a folder that is not there", {}, spec="\u202e\x1b[2J\ngone"),
        Trial(
            "name: a table beside a graph, turned round",
            {
                "g.graphml": '<graphml><graph><node id="1"/><node id="2"/><edge source="1" target="2"/></graph></graphml>',
                "\u202e_nodes.csv": "id\n1\n",
            },
            (2, 1),
        ),
    ]


def _cards() -> list[Trial]:
    files = {"nodes.csv": _NODES, "edges.csv": _EDGES}
    plain = "edges: edges.csv\nnodes: nodes.csv\n"
    made: dict[str, Any] = {
        "card: aliases that multiply": "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b]\n" + plain,
        "card: lists 5,000 deep": plain + "ignore: " + "[" * 5_000 + "]" * 5_000,
        "card: mappings 3,000 deep": plain + "attributes: " + "{a: " * 3_000 + "1" + "}" * 3_000,
        "card: an object of Python's": plain + "name: !!python/object/apply:os.mkdir [exploded]\n",
        "card: a file outside": "edges: ../../../../etc/passwd\nnodes: nodes.csv\n",
        "card: an absolute file": "edges: /etc/passwd\nnodes: nodes.csv\n",
        "card: 10^9 bins": plain + "attributes: {g: {bins: quantile:1000000000}}\n",
        "card: bins of 10^-300": plain + "attributes: {g: {bins: width:1e-300}}\n",
        "card: a number of a million digits": plain + "name: " + "9" * 1_000_000 + "\n",
        "card: a name that turns text round": (plain + 'name: "\\u202e\\e[2J"\n', (3, 2)),
        "card: a column that turns text round": plain + 'sensitive: ["\\u202e\\e[2J"]\n',
        "card: a key that turns text round": plain + '"\\u202e\\e[2J": 1\n',
        "card: a file that turns text round": 'edges: "\\u202e\\e[2J\\n.csv"\nnodes: nodes.csv\n',
        "card: a zero in a file's name": 'edges: "a\\0b"\nnodes: nodes.csv\n',
        "card: an encoding that unpacks": plain + "encoding: zlib_codec\n",
        "card: an encoding that is code": plain + "encoding: unicode_escape\n",
        "card: a megabyte of blanks": plain + " " * 2_000_000,
        "card: 50,000 names": plain + "ignore: [" + "a," * 50_000 + "]\n",
        "card: a day for a name": plain + "name: 2024-99-99\n",
        "card: a number of base 60": plain + "name: " + "59:" * 5_000 + "59\n",
        "card: bytes that are no text": plain.encode() + b"name: \xff\xfe\n",
        "card: zeros": plain.encode() + bytes(1000),
    }
    slack = ("day for", "base 60", "10^9", "bins of", "encoding that is")
    return [
        Trial(
            n,
            {"dataset.yaml": m[0] if isinstance(m, tuple) else m, **files},
            m[1] if isinstance(m, tuple) else "either" if any(s in n for s in slack) else None,
        )
        for n, m in made.items()
    ]


_CLAIMS: dict[str, Any] = {
    "a tensor without steps": _torch_file(lambda torch: torch.zeros(1).expand(1_000_000, 4096)),
    "a tensor without steps, in a dict": _torch_file(
        lambda torch: {"edge_index": torch.zeros(1, dtype=torch.int64).expand(2, 10**9)}
    ),
    "many tensors without steps": _torch_file(
        lambda torch: {f"x{i}": torch.zeros(1).expand(10_000_000) for i in range(300)}
    ),
    "a sparse tensor of 10^12": _torch_file(
        lambda torch: torch.sparse_coo_tensor(torch.tensor([[0], [0]]), torch.tensor([1.0]), (10**6, 10**6))
    ),
    "a pickle": pickle.dumps(_Exploding()),
    "a pickle in an archive": _zip(
        {"a/data.pkl": pickle.dumps(_Exploding()), "a/version": b"3", "a/byteorder": b"little"}
    ),
    "the old form": _torch_file(lambda torch: torch.zeros(3), _use_new_zipfile_serialization=False),
    "zeros of 1 GB": _zeros("a/data.pkl", 1),
    "an archive of nothing": _zip({}),
    "a pickle 100,000 deep": _zip(
        {"a/data.pkl": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "a/version": b"3"}
    ),
    "a pickle of 200 MB of marks": _later(
        lambda: _zip({"a/data.pkl": b"\x80\x02" + b"(" * 200_000_000, "a/version": b"3"})
    ),
    "a pickle that repeats a text": _zip(
        {
            "a/data.pkl": b"\x80\x02X\x00\x00\x10\x00" + b"x" * 2**20 + b"q\x00" + b"h\x00" * 1_000_000 + b".",
            "a/version": b"3",
        }
    ),
    "cut off": _zip({"a/data.pkl": b"\x80\x02."})[:60],
}


def _torch() -> list[Trial]:
    return [Trial(f"torch: {n}", {"g.pt": m}) for n, m in _CLAIMS.items()]


def _embeddings() -> list[Trial]:
    rows = "1,0.5,1\n2,1,2\n3,2,1\n"
    table = "id,a,b\n" + rows
    plain = "id,a,b\n1,0.5,1.1\n2,1.2,2.3\n3,2.4,1.7\n"  # no column of numbers that may be ids too
    big = 2 * 2**20
    made: dict[str, dict[str, Any]] = {
        "e.npy": {
            "claims of 10^15 rows": _npy("(1000000000000000, 4)", "'<f4'"),
            "claims of 100 million rows": _npy("(100000000, 4)", "'<f4'"),
            "a hole of 10 GB": lambda path: _sparse_file(path, _npy("(625000000, 4)", "'<f4'"), 10**10),
            "objects": _npy("(3, 1)", "'|O'", pickle.dumps(_Exploding())),
            "numbers of 2 GB": _npy("(3, 1)", "'|V2000000000'"),
        },
        "e.npz": {
            "zeros of 1 GB": _zeros("embedding.npy", 1),
            "claims of 10^15 rows": _zip({"embedding.npy": _npy("(1000000000000000, 4)", "'<f4'")}),
            "a directory that says 100 bytes": _later(lambda: _zip({"embedding.npy": bytes(2**29)}, claims=100)),
            "names that turn text round": _zip({"\u202e.npy": _npy("(0,)"), "\x1b.npy": _npy("(0,)")}),
        },
        "e.csv": {
            "a cell of 2 MB": table + f"4,{'x' * big},1\n",
            "a number of 2 MB": f"id,a,b\n1,{'0' * big},1\n2,1,1\n3,1,1\n",
            "a first cell of 2 MB": f"id,a,b\n{'x' * big},1,1\n" + rows,
            "a number of 2 MB of commas in marks": f'id,a,b\n1,"{"1," * (big // 2)}",1\n' + rows,
            "a million columns": "id"
            + "".join(f",c{i}" for i in range(1_000_000))
            + "\n"
            + "1"
            + ",1" * 1_000_000
            + "\n",
            "a million columns, no header": "1" + ",1" * 1_000_000 + "\n",
            "a line of 100 MB": _later(lambda: "x" * 100_000_000),
            "zeros": table + "\0" * 1_000_000,
            "ids that turn text round": table + "\u202e4\x1b[2J,1,1\n",
        },
        "e.csv.gz": {"a bomb": _gzip(b"9,1,1\n" * 2**17, 2000, b"id,a,b\n")},
        "e.vec": {
            "10^18 vectors": "1000000000000000000 3\n1 1 1 1\n",
            "vectors of 10^9 numbers": "3 1000000000\n1 1 1 1\n",
            "a line of 100 MB": _later(lambda: "3 2\n1 " + "1" * 100_000_000),
            "blanks of 20 MB": _later(lambda: "3 2\n" + " " * 20_000_000 + "\n"),
            "blanks without a line": _later(lambda: " " * 50_000_000),
            "a million words in a line": "3 2\n" + "1 " * 1_000_000 + "\n",
            "an id that turns text round": "4 2\n1 1 1\n2 1 1\n3 1 1\n\u202e4\x1b 1 1\n",
            "zeros": "3 2\n" + "\0" * 1000 + "\n",
        },
        "e.vec.gz": {"a bomb": _gzip(b"9 1 1\n" * 2**17, 2000, b"1000000 2\n")},
        "e.parquet": {
            "a text of 100 KB in 20,000 rows": _frame(_plain("x" * 100_000, 20_000)),
            "the same number a hundred million times": _frame(
                lambda pa: pa.concat_tables([pa.table({"id": pa.repeat(7, 1_000_000)})] * 100)
            ),
            "10,000 columns": _frame(lambda pa: {"id": [1, 2, 3], **{f"c{i}": [0.5] * 3 for i in range(10_000)}}),
            "lists": _frame(lambda pa: {"id": [1, 2, 3], "x": [[1.0, 2.0]] * 3}),
        },
        "e.pt": _CLAIMS,
    }
    out = [
        Trial(f"embedding {name}: {what}", {name: m}, spec=name, embeds=True)
        for name, kinds in made.items()
        for what, m in kinds.items()
    ]
    specials = {
        "pipe": _fifo,
        "socket": _socket,
        "folder": _directory,
        "device": _link("/dev/zero"),
        "link to itself": _link("e.csv"),
        "file without a size": _link("/proc/self/environ"),
    }
    for name in ("e.csv", "e.npy", "e.npz", "e.pt", "e.parquet", "e.vec", "e.csv.gz"):
        kinds = specials if name == "e.csv" else {"pipe": _fifo, "device": _link("/dev/zero")}
        out += [
            Trial(f"embedding {name}: a {kind}", {name: make}, spec=name, embeds=True) for kind, make in kinds.items()
        ]
    return [
        *out,
        Trial(
            "embedding: a name that turns text round",
            {"\u202e\x1b[2J.npy": _npy("(1, 1)", "'<f4'", bytes(4))},
            spec="\u202e\x1b[2J.npy",
            embeds=True,
        ),
        Trial("embedding: a link to one elsewhere", {"e.csv": _elsewhere(plain)}, (3, 2), spec="e.csv", embeds=True),
        Trial("embedding: read right", {"e.csv": plain}, (3, 2), spec="e.csv", embeds=True),
    ]
