"""What a layout is: which files a folder must hold, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from uge_core.errors import DatasetMissing
from uge_core.graph.graph import AttributedGraph

Asked = frozenset[str] | None
"""The lower-case names of the columns that are to be the attributes; None: the layout's or the values' choice."""
_NEVER_ZIPPED = (".npy", ".npz", ".parquet", ".pt", ".xlsx", ".yaml")
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
        tensors: a copy of the tensors of a file of torch, which is read in its place; None: torch reads the file.
    """

    name: str
    files: Mapping[str, Path]
    missing: tuple[str, ...] = ()
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
        begins: whether a file begins as this layout's telling ones do, where their names alone do not say so.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    read: Callable[[Found, Asked], AttributedGraph]
    named: str = "{}"
    begins: Callable[[Path], bool] | None = None

    @property
    def summary(self) -> str:
        """The files, in words."""
        needed = " + ".join(" or ".join(p.patterns).replace("{}", "NAME") for p in self.parts if not p.optional)
        return needed.replace("region_jobNAME", "region_job*")

    def find(self, folder: Folder) -> list[Found]:
        """The graphs of `folder` in this layout, complete or with what they miss."""
        telling = [pattern for p in self.parts if p.telling and not p.optional for pattern in p.patterns]
        stems = sorted({stem for pattern in telling for stem in folder.stems(pattern)})
        return [self._gather(folder, stem) for stem in stems if self._tells(folder, stem)]

    def _tells(self, folder: Folder, stem: str) -> bool:
        """Whether one of the telling files begins as such a file does."""
        if self.begins is None:
            return True
        names = [p.format(stem) for part in self.parts if part.telling and not part.optional for p in part.patterns]
        return any(self.begins(path) for path in map(folder.file, names) if path is not None)

    def _gather(self, folder: Folder, stem: str) -> Found:
        files: dict[str, Path] = {}
        missing = []
        for part in self.parts:
            options = [pattern.format(stem) for pattern in part.patterns]
            path = next((p for p in map(folder.file, options) if p is not None), None)
            if path is not None:
                files[part.key] = path
            elif not part.optional:
                endings = " or ".join(o if o.endswith(_NEVER_ZIPPED) else f"{o}[.gz]" for o in options)
                missing.append(f"{endings} is missing; it must hold {part.contents.replace('{}', stem)}")
        fixed = all("{}" not in pattern for part in self.parts for pattern in part.patterns)
        return Found(folder.path.resolve().name if fixed else self.named.format(stem), files, tuple(missing))


@dataclass(frozen=True)
class Folder:
    """The files of a folder, each found plain or gzipped.

    Attributes:
        path: the folder.
        files: the names of its files, sorted; without the hidden ones that systems and programs leave behind.
    """

    path: Path
    files: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Lists `path`.

        Raises:
            DatasetMissing: the folder cannot be listed.
        """
        try:
            return cls(path, tuple(sorted(p.name for p in path.iterdir() if not _is_dropping(p.name) and p.is_file())))
        except OSError as e:
            raise DatasetMissing(f"{path}: the folder cannot be read ({e.strerror or e})") from None

    def file(self, name: str) -> Path | None:
        """The file `name`, or ``name.gz``."""
        return next((self.path / n for n in (name, f"{name}.gz") if n in self.files), None)

    def stems(self, pattern: str) -> list[str]:
        """What stands for ``{}`` in the names of the files that match `pattern`, such as ``{}_edge.csv``."""
        rule = re.compile(re.escape(pattern).replace(r"\{\}", "(.*)") + r"(?:\.gz)?")
        matches = (rule.fullmatch(n) for n in self.files)
        return sorted({m.group(1) if "{}" in pattern else "" for m in matches if m})


def _is_dropping(name: str) -> bool:
    """Whether a file is a system's or a program's own: hidden (macOS' ._NAME), Windows' previews, Office's locks."""
    return name.startswith((".", "~$")) or name.lower() in _DROPPINGS
