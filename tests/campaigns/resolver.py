"""What is asked of the network while the dashboard starts, shows each page, prints a report and meets a foreign page.

All of it runs in a network of its own that has a way out, in which a resolver writes down each name that it is asked
for, and a tap each packet that would leave. Nothing may be asked, and nothing may leave.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("", "data", "runs", "leakage", "fairness", "tradeoff", "projection", "whatif", "report", "method")
OUTSIDE = "10.87.0.1/24"  # of the interface that leads out; nobody is at its other end
_WAY_OUT = "link add out type veth peer name nobody"
APART = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def why_not() -> str | None:
    """Why it cannot run here, or None."""
    if missing := [tool for tool in ("unshare", "ip", "mount", "chromium") if shutil.which(tool) is None]:
        return f"{', '.join(missing)}: not found"
    made = subprocess.run([*APART, "ip", *_WAY_OUT.split()], capture_output=True, text=True)
    return made.stderr.strip() or None if made.returncode else None


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Yields each step with what was asked, or None."""
    if (reason := why_not()) is not None:
        yield "a network of its own", f"cannot be made here: {reason}"
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [*APART, sys.executable, "-m", "tests.campaigns.resolver", folder, *(["--quick"] if quick else [])]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as inside:
            assert inside.stdout is not None
            for line in inside.stdout:
                step, fault = json.loads(line)
                yield step, fault
        if inside.returncode:
            yield "the steps", f"ended with {inside.returncode}"


class Recorder:
    """A resolver that knows every name, all at one place outside, and a tap on the way there."""

    def __init__(self, folder: Path) -> None:
        for words in (
            "link set lo up",
            _WAY_OUT,
            f"addr add {OUTSIDE} dev out",
            "link set nobody up",
            "link set out up arp off",
            "route add default dev out",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        subprocess.run(["mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf"], check=True)
        self._asked: list[str] = []
        self._resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._resolver.bind(("127.0.0.1", 53))
        self._tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
        self._tap.bind(("out", 0x0003))
        for watch in (self._resolve, self._look):
            threading.Thread(target=watch, daemon=True).start()

    def _resolve(self) -> None:
        while True:
            question, sender = self._resolver.recvfrom(4096)
            labels, at = [], 12
            while size := question[at]:
                labels.append(question[at + 1 : at + 1 + size].decode("ascii", "replace"))
                at += size + 1
            kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
            self._asked.append(".".join(labels))
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton("10.87.0.3") if kind == 1 else b""
            head = question[:2] + b"\x81\x80\0\1" + struct.pack(">H", bool(answer)) + b"\0\0\0\0"
            self._resolver.sendto(head + question[12 : at + 5] + answer, sender)

    def _look(self) -> None:
        while True:
            packet, (_, kind, *_) = self._tap.recvfrom(4096)
            if kind == 0x0800:  # IPv6 looks for its neighbours by itself
                self._asked.append(f"{socket.inet_ntoa(packet[16:20])} by protocol {packet[9]}")

    def asked(self) -> list[str]:
        """What was asked for since the last call, each once."""
        found, self._asked[:] = list(dict.fromkeys(self._asked)), []
        return found


def _say(step: str, fault: str | None) -> None:
    print(json.dumps([step, fault]), flush=True)


def _inside(folder: Path, quick: bool) -> None:
    recorder = Recorder(folder)

    def judge(step: str, wait: float = 1.0) -> None:
        time.sleep(wait)
        asked = recorder.asked()
        _say(step, f"asked for {', '.join(asked)}" if asked else None)

    socket.getaddrinfo("recorded.example", 80)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"?", ("192.0.2.1", 9))
    time.sleep(0.2)
    seen = recorder.asked()
    caught = {"recorded.example", "192.0.2.1 by protocol 17"} <= set(seen)
    _say("the recorder sees a name and a packet", None if caught else f"it saw {seen}")

    port = 8599
    environment = os.environ | {"UGE_STORE": str(folder / "store"), "HOME": str(folder)}
    command = [sys.executable, "-m", "uge_core", "app", "--port", str(port)]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment | {"STREAMLIT_SERVER_HEADLESS": "true"}, stdout=log, stderr=log
    )
    try:
        _until_it_answers(server, port)
        judge("start")
        status = _foreign_websocket(port)
        judge("a foreign page opens the websocket", 4)
        _say("the foreign page is refused", None if " 403 " in status else status)
        _pages(f"http://127.0.0.1:{port}", PAGES[-2:] if quick else PAGES, judge)
    finally:
        server.terminate()
        server.wait(20)


def _until_it_answers(server: subprocess.Popen[bytes], port: int) -> None:
    limit = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > limit:
                raise
            time.sleep(0.2)


def _foreign_websocket(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), 20) as asked:
        asked.sendall(
            f"GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        return asked.recv(4096).partition(b"\r\n")[0].decode()


def _pages(address: str, pages: tuple[str, ...], judge: Any) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # This browser stands for the reader's own. What it asks by itself is not ours and is kept still; what a page
        # has it ask for is.
        silent = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=silent)
        tab = browser.new_page()
        tab.set_default_timeout(120_000)
        own = (address, address.replace("http", "ws", 1), "data:", "blob:")
        foreign: list[str] = []
        tab.on("request", lambda r: None if r.url.startswith(own) else foreign.append(r.url))
        tab.on("websocket", lambda w: None if w.url.startswith(own) else foreign.append(w.url))
        for page in pages:
            tab.goto(f"{address}/{page}")
            tab.wait_for_function(
                "() => document.querySelector('[data-test-script-state=notRunning]')"
                " && document.querySelector('[data-testid=stMain] h1')"
            )
            judge(f"page {page or 'overview'}")
            if page == "report":
                with tab.expect_download() as download:
                    tab.get_by_role("button", name="PDF").click()
                assert download.value.path().read_bytes().startswith(b"%PDF")
                judge("a report as PDF")
        _say("what pages had the browser ask for", ", ".join(foreign) or None)
        browser.close()


if __name__ == "__main__":
    _inside(Path(sys.argv[1]), "--quick" in sys.argv)
