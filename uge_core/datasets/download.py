"""Fetching one file that the user asked for by name: https alone, bounded, and counted while it comes.

Nothing here decides to fetch: whoever calls it was told to by the user.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from uge_core.errors import ConfigError, DatasetMissing
from uge_core.progress import OnProgress, Progress

MIRROR_VARIABLE = "UGE_MIRROR"
"""The environment variable that takes the place of scheme and host in every URL."""
LARGEST = 2**28
"""Bytes that a fetched file may have."""
TIMEOUT = 30.0
"""Seconds that a host may be silent."""
_CHUNK = 2**16
_ZIP = b"PK\x03\x04"


def at_mirror(url: str) -> str:
    """Where to fetch `url` from: itself, or the same path below `MIRROR_VARIABLE`.

    Raises:
        ConfigError: the mirror is neither https nor, on this machine, http.
    """
    mirror = os.environ.get(MIRROR_VARIABLE, "").strip()
    if not mirror:
        return url
    try:
        parts = urlsplit(mirror)
        usable = parts.hostname and not parts.query and not parts.fragment and "@" not in parts.netloc
        usable = usable and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(mirror)))
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{MIRROR_VARIABLE}: found {mirror!r}; allowed: https://HOST or https://HOST/PATH without a password, "
            "and http for this machine alone, such as http://127.0.0.1:8000"
        )
    return mirror.rstrip("/") + urlsplit(url).path


def fetch(url: str, target: Path, called: str, on_progress: OnProgress) -> str:
    """Fetches a zip archive (an .npz is one) into a new file.

    Args:
        url: where it lies; https, or http on this machine.
        target: the file to make; what a failure leaves there is the caller's to remove.
        called: what the user named, for messages.
        on_progress: told how much has come.

    Returns:
        The SHA-256 of what came.

    Raises:
        DatasetMissing: it did not come whole, is larger than `LARGEST`, or no archive.
        OSError: the target cannot be written.
    """
    digest = hashlib.sha256()
    with target.open("xb") as file:
        for chunk in _chunks(url, called, on_progress):
            file.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(url: str, called: str, on_progress: OnProgress) -> Iterator[bytes]:
    """What the host sends, checked as it comes."""
    request = urllib.request.Request(url, headers={"User-Agent": "uge_core"})
    text = f"fetching {called}"
    done = total = 0
    began = time.monotonic()
    try:
        with _opener(url).open(request, timeout=TIMEOUT) as answer:
            total = max(int(answer.headers.get("Content-Length") or 0), 0)
            if total > LARGEST:
                raise DatasetMissing(f"{called}: {url} has {total:,} bytes, allowed: {LARGEST:,}; {_ELSEWHERE}")
            while chunk := answer.read(_CHUNK):
                if not done and not chunk.startswith(_ZIP):
                    raise DatasetMissing(f"{called}: {url} begins with {chunk[:15]!r} and is no archive; {_ELSEWHERE}")
                done += len(chunk)
                if done > LARGEST:
                    raise DatasetMissing(f"{called}: {url} goes on beyond {LARGEST:,} bytes; {_ELSEWHERE}")
                if total:
                    left = (time.monotonic() - began) * (total - done) / done
                    on_progress(Progress("fetching", done, total, text, left))
                yield chunk
    except urllib.error.HTTPError as e:
        e.close()
        why = f"{e.code} {http.client.responses.get(e.code, '')}".strip()
        raise DatasetMissing(f"{called}: {url} answered {why}; {_ELSEWHERE}") from None
    except (OSError, http.client.HTTPException, ValueError) as e:
        what = f"broke off after {done:,} bytes" if done else "cannot be reached"
        raise DatasetMissing(f"{called}: {url} {what} ({_reason(e)}); check the connection, or {_ELSEWHERE}") from None
    if done < total or not done:
        raise DatasetMissing(f"{called}: {url} broke off after {done:,} of {total:,} bytes; try again, or {_ELSEWHERE}")


_ELSEWHERE = f"name a mirror in {MIRROR_VARIABLE}"


class _HttpsAlone(urllib.request.HTTPRedirectHandler):
    """Follows a redirection to https and to nothing else."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to follow up with."""
        if urlsplit(newurl).scheme != "https":
            fp.close()
            raise urllib.error.URLError(f"it sends on to {newurl}, and only https is followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(url: str) -> urllib.request.OpenerDirector:
    # What lies on this machine is no business of a proxy's.
    direct = [urllib.request.ProxyHandler({})] if _is_loopback(url) else []
    return urllib.request.build_opener(_HttpsAlone, *direct)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _reason(error: Exception) -> str:
    """Why a host could not be reached, in a few words."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return f"no answer within {TIMEOUT:g} seconds"
    return " ".join(str(getattr(inner, "strerror", None) or inner).split()) or type(inner).__name__
