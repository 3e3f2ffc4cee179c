"""Errors a user can cause. Each message says what was found, what is allowed and what to do."""

from __future__ import annotations

import shlex

_OBEYED = {
    code: chr(code).encode("unicode_escape").decode()
    for first, last in (
        (0x00, 0x1F),
        (0x7F, 0x9F),
        (0x61C, 0x61C),
        (0x200E, 0x200F),
        (0x2028, 0x202E),
        (0x2066, 0x2069),
        (0xD800, 0xDFFF),
    )
    for code in range(first, last + 1)
}
_MOST = 4_000


def escaped(text: str) -> str:
    r"""A text with `\x1b` or `\u202e` in the place of what a terminal obeys, or what turns the text behind it round.

    Names of files, columns and people are written by others; a line's end is one of these characters.
    """
    return text if text.isprintable() else text.translate(_OBEYED)


def shell_word(text: str) -> str:
    r"""A text as one word of a command for a shell: `$'a\u202eb'` where a terminal would obey it as it is."""
    if text.isprintable():
        return shlex.quote(text)
    kept = (c if c.isprintable() and c not in "'\\" else _in_a_word(c) for c in text)
    return f"$'{''.join(kept)}'"


def _in_a_word(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file's name that is no UTF-8, as Python holds it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}" if code > 0x7F else f"\\x{code:02x}"


def in_a_line(text: str) -> str:
    """A text escaped, and without its middle where it is too long for a message, as a cell may be."""
    cut = text if len(text) <= _MOST else f"{text[: _MOST // 2]} [...] {text[-_MOST // 2 :]}"
    return escaped(cut)


class UgeError(Exception):
    """Base of every error this package raises on purpose; shown as its text, without a traceback."""

    def __str__(self) -> str:
        return "\n".join(map(escaped, super().__str__().split("\n")))


class ConfigError(UgeError):
    """A setting has a value that is not allowed, or does not fit the graph or the method."""


class TooManyGroups(ConfigError):
    """The attributes together form more groups than a table of pairs can hold.

    Attributes:
        num_groups: how many they form.
    """

    def __init__(self, message: str, num_groups: int) -> None:
        super().__init__(message)
        self.num_groups = num_groups

    def __reduce__(self) -> tuple[type[TooManyGroups], tuple[str, int]]:
        return type(self), (str(self), self.num_groups)


class GraphError(UgeError):
    """The data that came in cannot be made into an attributed graph; said in one line."""

    def __str__(self) -> str:
        return in_a_line(Exception.__str__(self))


class DatasetMissing(GraphError):
    """A file or folder that a dataset needs is not there."""


class NotRecognised(GraphError):
    """Files in no known layout.

    Attributes:
        found: what was found.
        next_step: the command that says more, the second line of the text.
    """

    def __init__(self, found: str, next_step: str) -> None:
        self.found, self.next_step = (in_a_line(text) for text in (found, next_step))
        super().__init__(f"{self.found}\n{self.next_step}")

    def __str__(self) -> str:
        return f"{self.found}\n{self.next_step}"

    def __reduce__(self) -> tuple[type[NotRecognised], tuple[str, str]]:
        return type(self), (self.found, self.next_step)


class EmbeddingError(UgeError):
    """A file of embeddings cannot be read, or does not fit the graph; said in one line."""

    def __str__(self) -> str:
        return in_a_line(Exception.__str__(self))


class RecordError(UgeError):
    """A report cannot be read, or is no audit record."""


class NotReadYet(GraphError):
    """A file of torch that a worker has to read first, as this process must not load torch."""


class StoreError(UgeError):
    """The run store cannot be read or written."""


class RunNotFound(StoreError):
    """No stored run has the id asked for."""


class TrainingDiverged(UgeError):
    """The loss of some members of an ensemble stopped being a finite number.

    Attributes:
        members: positions of their configs in the call to `fit`.
    """

    def __init__(self, message: str, members: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.members = members


class OutOfMemory(UgeError):
    """A pass needs more memory than the device or the machine gives."""


class WorkerLost(UgeError):
    """A pass or an audit was lost again and again with the machine it ran on, or the cluster is gone."""


class ProcessLost(UgeError):
    """One of several processes that train one embedding has ended, or is not heard of."""
