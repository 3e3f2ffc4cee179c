"""What of a reader's session stays after the browser left: little, and not for long.

A reload begins a new session and leaves the old one, with its tables and charts, behind. Streamlit keeps 128 of them,
and looks at their age only when another comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

MOST = 8
"""Sessions that wait for their browser to come back; the one that waited longest makes room."""
_DOWNLOAD = 10.0  # seconds in which a file whose button was just pressed is still fetched


class WaitingSessions:
    """Sessions without a browser, as Streamlit's `SessionStorage` keeps them; all calls come from its event loop.

    Args:
        comes_back: whether the reader of a session may take it up again; another's ends at once.
        clear_files: removes the files that no session holds any more.
        seconds: for how long one waits; a connection that broke is back within seconds.
        most: how many wait.
    """

    def __init__(
        self, comes_back: Callable[[Any], bool], clear_files: Callable[[], None], seconds: float, most: int = MOST
    ) -> None:
        self._comes_back, self._clear_files, self._seconds, self._most = comes_back, clear_files, seconds, most
        self._waiting: dict[str, tuple[Any, asyncio.TimerHandle]] = {}

    def get(self, session_id: str) -> Any:
        """One that waits, or None."""
        return self._waiting.get(session_id, (None, None))[0]

    def save(self, session_info: Any) -> None:
        """Has a session wait whose browser left."""
        session = session_info.session
        if not self._comes_back(session):
            self._end(session)
            return
        self.delete(session.id)
        late = asyncio.get_running_loop().call_later(self._seconds, self._drop, session.id)
        self._waiting[session.id] = session_info, late
        while len(self._waiting) > self._most:
            self._drop(next(iter(self._waiting)))

    def delete(self, session_id: str) -> None:
        """Waits no longer for one, which somebody else uses or ends."""
        if session_id in self._waiting:
            self._waiting.pop(session_id)[1].cancel()

    def list(self) -> list[Any]:
        """All that wait."""
        return [session_info for session_info, _ in self._waiting.values()]

    def _drop(self, session_id: str) -> None:
        session = self.get(session_id).session
        self.delete(session_id)
        self._end(session)

    def _end(self, session: Any) -> None:
        session.shutdown()
        # The first look only marks what can be downloaded.
        asyncio.get_running_loop().call_later(_DOWNLOAD, self._clear_files)
