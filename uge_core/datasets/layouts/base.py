"""What a layout is: which files a folder must hold, and how they are read."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uge_core.datasets.bounded import special
from uge_core.errors import DatasetMissing, GraphError
from uge_core.graph.graph import AttributedGraph

Asked = frozenset[str] | None
"""The lower-case names of the columns that are to be the attributes; None: the layout's or the values' choice."""
_NEVER_ZIPPED = (".npy", ".npz", ".parquet", ".pt", ".xlsx", ".yaml")
_AS_WRITTEN = (".npy", ".npz", ".parquet")
"""Endings by which readers tell tables apart, and so in small letters; others may be in capitals, as older programs write."""
_DROPPINGS = {"thumbs.db", "ehthumbs.db", "desktop.ini"}


@dataclass(frozen=True)
class Part:
    """One file of a layout.

    Attributes:
        key: what the layout's code calls it.
        patterns: its possible names, the first found is taken; ``{}`` stands for the graph's name.
        contents: what it must hold, said when it is missing.
        optional: the graph is complete without it.
        telling: its presence alone means that someone uses this layout.
    """

    key: str
    patterns: tuple[str, ...]
    contents: str = ""
    optional: bool = False
    telling: bool = True


@dataclass(frozen=True)
class Found:
    """One graph of a folder.

    Attributes:
        name: how it is addressed.
        files: the path of each part that is there.
        missing: one sentence per part that is not.
        rivals: files of which each could be one part.
        telling: the files by which the layout was recognised.
        sure: these files begin as those of the layout do, or are called so.
        tensors: a copy of the tensors of a file of torch, which is read in its place; None: torch reads the file.
    """

    name: str
    files: Mapping[str, Path]
    missing: tuple[str, ...] = ()
    rivals: tuple[Path, ...] = ()
    telling: tuple[Path, ...] = ()
    sure: bool = True
    tensors: Path | None = None


@dataclass(frozen=True)
class Layout:
    """A set of files that belong together.

    Attributes:
        name: short name, `AttributedGraph.layout`.
        title: whose layout it is.
        parts: its files.
        read: makes the graph from the files, given the attribute names asked for.
        named: the graph's name, with ``{}`` for what the patterns have there.
        begins: whether a file begins as this layout's telling ones do, where their names alone do not say so; None where
            that cannot be told, so that any other graph in the folder is taken before.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    read: Callable[[Found, Asked], AttributedGraph]
    named: str = "{}"
    begins: Callable[[Path], bool | None] | None = None

    @property
    def summary(self) -> str:
        """The files, in words."""
        needed = " + ".join(" or ".join(p.patterns).replace("{}", "NAME") for p in self.parts if not p.optional)
        return needed.replace("region_jobNAME", "region_job*")

    def find(self, folder: Folder, wanted: Path | None = None) -> list[Found]:
        """The graphs of `folder` in this layout, complete or with what they miss.

        Args:
            folder: the folder.
            wanted: one of its files, taken where several could be one part.
        """
        telling = [pattern for p in self.parts if p.telling and not p.optional for pattern in p.patterns]
        stems = sorted({stem for pattern in telling for stem in folder.stems(pattern)})
        gathered = (self._gather(folder, stem, wanted) for stem in stems)
        return [found for found in gathered if found is not None]

    def _says(self, path: Path) -> bool | None:
        """What the beginning of a file says."""
        if self.begins is None:
            return True
        try:
            return self.begins(path)
        except (OSError, EOFError, zlib.error, GraphError):  # whoever reads it says how it is damaged
            return None

    def _gather(self, folder: Folder, stem: str, wanted: Path | None) -> Found | None:
        """The graph called `stem`, or None where no file begins as those of the layout do."""
        files: dict[str, Path] = {}
        missing = []
        telling: list[Path] = []
        rivals: list[Path] = []
        sure = True
        for part in self.parts:
            there = list(dict.fromkeys(path for p in part.patterns for path in folder.named(p, stem)))
            if part.telling and not part.optional:
                said = {path: self._says(path) for path in there}
                there = [path for path in there if said[path] is not False]
                sure = sure and all(said[path] for path in there)
            if there:
                alike = _picked(there, wanted)
                files[part.key] = alike[0]
                rivals += alike if len(alike) > 1 else []
                telling += [files[part.key]] if part.telling and not part.optional else []
            elif not part.optional:
                options = [pattern.format(stem) for pattern in part.patterns]
                endings = " or ".join(o if o.endswith(_NEVER_ZIPPED) else f"{o}[.gz]" for o in options)
                missing.append(f"{endings} is missing; it must hold {part.contents.replace('{}', stem)}")
        if not telling:
            return None
        fixed = all("{}" not in pattern for part in self.parts for pattern in part.patterns)
        name = folder.path.resolve().name if fixed else self.named.format(stem)
        return Found(name, files, tuple(missing), tuple(rivals), tuple(telling), sure)


def _picked(there: Sequence[Path], wanted: Path | None) -> list[Path]:
    """The file that is a part of the graph, and those with its stem that could be it as well."""
    if wanted is not None:
        named = [p for p in there if p.name == wanted.name]
        alike = named or [p for p in there if _split(p.name)[1] == _split(wanted.name)[1]]
        if len(alike) == 1:
            return alike
    return [p for p in there if _split(p.name)[0] == _split(there[0].name)[0]]


def _split(name: str) -> tuple[str, str]:
    """A file's name without its ending, in small letters, and the ending with .gz."""
    stem, _, ending = name.lower().removesuffix(".gz").rpartition(".")
    return stem, ending + ".gz" * name.endswith(".gz")


@dataclass(frozen=True)
class Folder:
    """The files of a folder, each found plain or gzipped.

    Attributes:
        path: the folder.
        files: the names of its files, sorted; without the hidden ones that systems and programs leave behind.
        strange: what is neither file nor folder, such as a pipe, by name.
    """

    path: Path
    files: tuple[str, ...]
    strange: tuple[tuple[str, str], ...] = ()

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Lists `path`.

        Raises:
            DatasetMissing: the folder cannot be listed.
        """
        try:
            there = sorted((p for p in path.iterdir() if not _is_dropping(p.name)), key=lambda p: p.name)
            files = tuple(p.name for p in there if p.is_file())
            return cls(path, files, tuple((p.name, _what(p)) for p in there if not (p.is_file() or p.is_dir())))
        except OSError as e:
            raise DatasetMissing(f"{path}: the folder cannot be read ({e.strerror or e})") from None

    def named(self, pattern: str, stem: str) -> list[Path]:
        """The files that match `pattern`, plain and gzipped, with `stem` in the place of ``{}``."""
        rule = _rule(pattern, re.escape(stem))
        return [self.path / n for n in self.files if rule.fullmatch(n)]

    def stems(self, pattern: str) -> list[str]:
        """What stands for ``{}`` in the names of the files that match `pattern`, such as ``{}_edge.csv``."""
        rule = _rule(pattern, "(.*)")
        matches = (rule.fullmatch(n) for n in self.files)
        return sorted({m.group(1) if "{}" in pattern else "" for m in matches if m})


def _rule(pattern: str, stem: str) -> re.Pattern[str]:
    """What the names of files match that are called as `pattern` says."""
    around = map(re.escape, pattern.split("{}"))
    case = "" if pattern.endswith(_AS_WRITTEN) else "i"
    return re.compile(stem.join(f"(?{case}:{text})" for text in around) + r"(?:\.gz)?")


def _what(path: Path) -> str:
    """What something is that is no file and no folder."""
    try:
        return special(path)
    except OSError:
        return "a link that leads nowhere"


def _is_dropping(name: str) -> bool:
    """Whether a file is a system's or a program's own: hidden (macOS' ._NAME), Windows' previews, Office's locks."""
    return name.startswith((".", "~$")) or name.lower() in _DROPPINGS
