"""Ids that are a number behind the same beginning, as 1632803 or p0001734: found by a table in place of a hash.

A text of as many bytes, with the same beginning and the same number in digits, is the same text: 7 and 007 differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray

_NUMBERED = re.compile(rb"(.*?)(\d+)", re.DOTALL)
_MOST_DIGITS = 9
_SPARSE = 16  # numbers up to so many times the number of ids
_ZERO = ord("0")


@dataclass(frozen=True, eq=False)
class Numbered:
    """Where ids stand, by their number.

    Attributes:
        head: what stands in front of each number.
        place: (L,) the position of the id with each number, -1 for none.
        length: (L,) its bytes.
    """

    head: bytes
    place: npt.NDArray[np.int32]
    length: npt.NDArray[np.int8]

    @classmethod
    def of(cls, chunks: Sequence[Any]) -> Numbered | None:
        """The table of some ids, or None where they are not written so, or their numbers are too far apart.

        Args:
            chunks: Arrow arrays of large strings, all different, none missing.
        """
        total = sum(map(len, chunks))
        first = next((chunk[0].as_py().encode() for chunk in chunks if len(chunk)), b"")
        match = _NUMBERED.fullmatch(first)
        if match is None or len(match[1]) > np.iinfo(np.int8).max - _MOST_DIGITS or total > np.iinfo(np.int32).max:
            return None
        parts = [_numbers(chunk, match[1]) for chunk in chunks]
        number = np.concatenate([number for number, _ in parts])
        if number.min() < 0 or number.max() >= _SPARSE * total:
            return None
        place = np.full(int(number.max()) + 1, -1, dtype=np.int32)
        place[number] = np.arange(total, dtype=np.int32)
        if (place[number] != np.arange(total)).any():
            return None  # 7 and 007
        length = np.zeros(len(place), dtype=np.int8)
        length[number] = np.concatenate([length for _, length in parts])
        return cls(match[1], place, length)

    def find(self, chunk: Any) -> npt.NDArray[np.int32]:
        """(n,) the position of each text of an Arrow array among the ids, -1 where it is none."""
        number, length = _numbers(chunk, self.head)
        known = (number >= 0) & (number < len(self.place))
        number[~known] = 0
        return np.where(known & (self.length[number] == length), self.place[number], np.int32(-1))


def _numbers(chunk: Any, head: bytes) -> tuple[IntArray, IntArray]:
    """(n,) the number behind the head of each text, -1 where it is written otherwise, and (n,) the bytes of each."""
    _, ends, text = chunk.buffers()
    offset = np.frombuffer(ends, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    length = np.diff(offset)
    data = np.frombuffer(text, dtype=np.uint8)[offset[0] : offset[-1]] if text is not None else np.zeros(0, np.uint8)
    digits = length - len(head)
    fine = (digits > 0) & (digits <= _MOST_DIGITS)
    number = np.zeros(len(length), dtype=np.int64)
    if not fine.any():
        return np.full_like(number, -1), length
    last = offset[1:] - offset[0] - 1
    width = int(length[0])
    # Texts of one length are the rows of a matrix.
    rows = data.reshape(-1, width) if (length == width).all() else None
    for k in range(int(digits[fine].max())):
        digit = (data[np.maximum(last - k, 0)] if rows is None else rows[:, width - 1 - k]) - np.uint8(_ZERO)
        if rows is None:
            digit[digits <= k] = 0
        fine &= digit <= 9
        number += digit * np.int64(10**k)
    for j, letter in enumerate(head):
        there = data[np.minimum(last - length + 1 + j, len(data) - 1)] if rows is None else rows[:, j]
        fine &= there == letter
    number[~fine] = -1
    return number, length
