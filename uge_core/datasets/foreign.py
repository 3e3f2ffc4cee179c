"""Files that are no table whatever their name says: web pages, pointers, dumps, files of other programs."""

from __future__ import annotations

import codecs
import re
import zlib
from contextlib import suppress
from pathlib import Path

from uge_core.datasets.bounded import open_bytes
from uge_core.errors import GraphError

_PEEK = 2**12
_BINARY = (
    (b"PAR1", "is Parquet; rename it so that it ends in .parquet"),
    (
        b"PK\x03\x04",
        "is a zip archive, as an Excel workbook is; rename it so that it ends in .xlsx if it is one, else unpack it",
    ),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook (.xls); save it as .xlsx, or each sheet as CSV UTF-8"),
    (b"SQLite format 3", "is a database of SQLite; export each table as CSV (sqlite3 -header -csv)"),
    (b"%PDF", "is a PDF; a table is needed, as CSV"),
    (b"$FL2", "is a file of SPSS; save it there as CSV, or with pandas: read_spss(FILE).to_csv"),
    (b"$FL3", "is a file of SPSS; save it there as CSV, or with pandas: read_spss(FILE).to_csv"),
    (
        b"<stata_dta>",
        "is a file of Stata; write it there with export delimited, or with pandas: read_stata(FILE).to_csv",
    ),
    (b"RDX", "is a file of R; write the table there with write.csv(x, FILE, row.names=FALSE)"),
    (b"RDA", "is a file of R; write the table there with write.csv(x, FILE, row.names=FALSE)"),
    (b"{\\rtf", "is a text of a word processor (RTF); save it as plain text"),
)
_TEXT = (
    (
        rb"<!doctype html|<html|<head|<body|<table",
        "is a web page (HTML), no table: mostly what a download gives that failed; fetch the file again, or open it in Excel "
        "and save it as CSV UTF-8",
    ),
    (
        rb"<\?xml|<graphml|<gexf",
        "is XML, no table; call GraphML NAME.graphml and GEXF NAME.gexf, and write others as CSV",
    ),
    (
        rb"version \S+git-lfs\S*/spec/",
        "is a pointer of Git LFS in place of the data; fetch these with git lfs pull, or by the download button of the page",
    ),
    (rb"\{\s*[\"}]|\[\s*[\[{\"\]]", "is JSON, no table; call a graph NAME.json, and write a table as CSV"),
    (
        rb"(?:[^\n]*\n){0,60}?\s*(?:create (?:table|database)|insert into)\s",
        "is a dump of a database (SQL), no table; load it into one and export each table as CSV",
    ),
    (rb"graph\s*\[|creator\s+\"[^\"]*\"\s*graph\s*\[", "is GML, no table; rename it so that it ends in .gml"),
    (rb"\*vertices\s", "is a network of Pajek, no table; rename it so that it ends in .net"),
    (rb"@relation\s", "is an ARFF file of Weka, no table; save it as CSV"),
)
_PATTERNS = tuple((re.compile(rb"\s*(?:" + pattern + rb")", re.IGNORECASE), what) for pattern, what in _TEXT)


def refuse_foreign(path: Path) -> None:
    """Refuses a file that is no table by how it begins.

    Args:
        path: the file; one that cannot be read is left to whoever reads it.

    Raises:
        GraphError: what it is, and what to do.
    """
    begins = b""
    with suppress(OSError, EOFError, zlib.error), open_bytes(path) as file:
        begins = file.read(_PEEK)
    bare = begins.removeprefix(codecs.BOM_UTF8)
    for mark, what in _BINARY:
        if bare.startswith(mark):
            raise GraphError(f"{path.name}: {what}")
    for pattern, what in _PATTERNS:
        if pattern.match(bare):
            raise GraphError(f"{path.name}: {what}")
