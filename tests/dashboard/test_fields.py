"""Values that the program gives to fields reach the browser, also where a run of the page is cut short."""

from typing import Any

import pytest

from uge_core.dashboard import fields
from uge_core.dashboard.fields import QUIET, sending, set_fields


class Cut(BaseException):
    """What ends a run of a page that a press cuts short."""


class State(dict[Any, Any]):
    """A session's state that notes which keys are set in this run: only those are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: set[Any] = set()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.sent.add(key)
        super().__setitem__(key, value)

    def again(self) -> set[Any]:
        """What was sent since this was asked for last."""
        sent, self.sent = self.sent, set()
        return {key for key in sent if not key.startswith("fields_")}


def cut(state: State, page: str = "") -> None:
    with pytest.raises(Cut), sending(state, page=page):
        raise Cut


def test_sent_until_the_browser_had_time_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(fields.time, "monotonic", lambda: now)
    state = State()
    with pytest.raises(Cut), sending(state, page="tradeoff"):
        set_fields(state, {"lambda": 1.0, "method": "UGE-C"})
        raise Cut
    state.again()
    now = 100.0
    cut(state, "tradeoff")
    assert state.again() == {"lambda", "method"}
    # The first run that ends, and those that begin before the browser has drawn what it sent.
    for moment in (200.0, 200.0 + 0.9 * QUIET, 200.0 + 1.8 * QUIET):
        now = moment
        with sending(state, page="tradeoff"):
            assert state.again() == {"lambda", "method"}
    now += 1.1 * QUIET
    with sending(state, page="tradeoff"):
        assert state.again() == set()
    assert state["lambda"] == 1.0 and state["method"] == "UGE-C"


def test_what_somebody_changed_is_not_sent() -> None:
    state = State()
    set_fields(state, {"lambda": 1.0})
    cut(state)
    dict.__setitem__(state, "lambda", 0.3)  # moved in the browser, which has drawn it
    state.again()
    with sending(state):
        assert state.again() == set() and state["lambda"] == 0.3
    # Nor when it comes back to what was set.
    dict.__setitem__(state, "lambda", 1.0)
    with sending(state):
        assert state.again() == set()


def test_a_field_that_is_gone_stays_so() -> None:
    state = State()
    set_fields(state, {"lambda": 1.0})
    del state["lambda"]
    with sending(state):
        assert "lambda" not in state


def test_a_fragment_sends_its_own_fields() -> None:
    state = State()
    set_fields(state, {"filter": "", "chosen": [3]})
    state.again()
    with sending(state, ("filter",)):
        assert state.again() == {"filter"}
    cut(state)
    assert state.again() == {"filter", "chosen"}


def test_a_fragment_that_ends_before_its_page_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(fields.time, "monotonic", lambda: now)
    state = State()
    with pytest.raises(Cut), sending(state):
        set_fields(state, {"lambda": 1.0})
        with sending(state, ("lambda",)):
            pass
        raise Cut
    state.again()
    now = 2 * QUIET
    with sending(state, ("lambda",)):
        assert state.again() == {"lambda"}


def test_another_page_sends_nothing_of_this_one() -> None:
    state = State()
    with pytest.raises(Cut), sending(state, page="runs"):
        set_fields(state, {"chosen": [3]})
        raise Cut
    state.again()
    with sending(state, page="leakage"):
        assert state.again() == set()
    with sending(state, page="runs"):
        assert state.again() == {"chosen"}
