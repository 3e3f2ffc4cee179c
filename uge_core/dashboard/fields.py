"""Values that the program gives to fields, sent until the browser has drawn them.

Streamlit sends such a value with one run of the page. A press that cuts this run short, or that begins another before
the browser has drawn it, loses the value: the browser draws the field with its default, and sends that back as if
somebody had chosen it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

QUIET = 3.0
"""Seconds without a run of the page, in which a browser draws what the last one sent."""
_UNSENT, _PAGE, _WHOLE = "fields_unsent", "fields_page", "fields_whole_page"


def set_fields(state: MutableMapping[Any, Any], values: Mapping[str, Any]) -> None:
    """Gives values to fields, by their keys; a page uses it in place of writing to `st.session_state`.

    Args:
        state: `st.session_state`.
        values: key of a field to its value.
    """
    state.update(values)
    unsent = state.setdefault(_UNSENT, {}).setdefault(state.get(_PAGE, ""), {})
    unsent.update({key: (value, None) for key, value in values.items()})


@contextmanager
def sending(state: MutableMapping[Any, Any], keys: tuple[str, ...] | None = None, page: str = "") -> Iterator[None]:
    """A run of a page, or of a fragment of it, which sends the values that may not have been drawn.

    A value is sent again until a run has ended that sent it and no other began for `QUIET` seconds; one of a field
    that somebody changed since is not.

    Args:
        state: `st.session_state`.
        keys: the fields that a fragment draws; without, this is a run of the whole page.
        page: its name; each page remembers its own fields.
    """
    if keys is not None and state.get(_WHOLE):
        yield  # the run of the page, which this is a part of, has sent them and may still be cut short
        return
    if keys is None:
        state[_PAGE], state[_WHOLE] = page, True
    unsent = state.setdefault(_UNSENT, {}).setdefault(state.get(_PAGE, ""), {})
    for key in [key for key in unsent if keys is None or key in keys]:
        value, ended = unsent[key]
        if key in state and state[key] == value and (ended is None or time.monotonic() - ended < QUIET):
            state[key] = value
        else:
            del unsent[key]
    try:
        yield
    finally:
        state[_WHOLE] = False
    for key in [key for key in unsent if keys is None or key in keys]:
        unsent[key] = unsent[key][0], time.monotonic()
