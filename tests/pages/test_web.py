"""The JSON routes and the sign-in, on a real server."""

import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

import uge_core as uge
import uge_core.dashboard as ui
from tests.campaigns import resolver, sign_in

SECRET = "a secret of sufficient length for signing"
AUTH = f"""[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "nobody"
client_secret = "nothing"
server_metadata_url = "http://127.0.0.1:9/none"
"""


@pytest.fixture
def start(fresh: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Starts a dashboard whose secrets are what is given."""

    def begin(root: Path, secrets: str = "", *options: str, base: str = "") -> Any:
        (tmp_path / "secrets.toml").write_text(secrets)
        return fresh(root, f"--secrets.files={tmp_path / 'secrets.toml'}", *options, base=base)

    return begin


def get(server: Any, path: str, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(server.address + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Cache-Control"] == "no-store"
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_runs_and_audits_as_stored(seeded: Path, start: Callable[..., Any]) -> None:
    store = uge.RunStore(seeded)
    first = store.list()[0]
    server = start(seeded)
    status, listed = get(server, "/api/runs")
    assert status == 200 and [run["id"] for run in listed["runs"]] == [run.id for run in store.list()]
    assert "source" not in listed["runs"][0]["dataset"]  # where people's files lie is nobody's business
    assert get(server, f"/api/runs/{first.id}")[1]["config"] == first.config
    assert get(server, f"/api/audits/{first.id}") == (200, first.audit)
    status, said = get(server, "/api/audits/nothing")
    assert status == 404 and "no run 'nothing'" in said["error"]
    path = first.folder / "audit.json"
    whole = path.read_text()
    path.write_text(whole.replace("1.0", "NaN", 1))
    status, told = get(server, f"/api/audits/{first.id}")
    path.write_text(whole)
    assert status == 409 and "SHA-256" in told["error"]


@pytest.mark.slow
@pytest.mark.parametrize("base", ["", "audit", "/a/deep/base/"])
def test_the_routes_are_json_below_a_base_path_too(
    seeded: Path, start: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    store = uge.RunStore(seeded)
    ids = [run.id for run in store.list()]
    monkeypatch.setenv("STREAMLIT_SERVER_BASE_URL_PATH", base)
    root = f"/{name}" if (name := base.strip("/")) else ""
    server = start(seeded, base=root)
    for top in {root, ""}:
        for slash in ("", "/"):
            status, listed = get(server, f"{top}/api/runs{slash}")
            assert status == 200 and [run["id"] for run in listed["runs"]] == ids
            assert get(server, f"{top}/api/runs/{ids[0]}{slash}")[1]["id"] == ids[0]
            assert get(server, f"{top}/api/audits/{ids[0]}{slash}") == (200, store.load(ids[0]).audit)
            assert get(server, f"{top}/api/audits/nothing{slash}")[0] == 404
            for nothing in ("", "/audits", "/x", "/runs/x/y", "/%3Cscript%3E"):
                status, said = get(server, f"{top}/api{nothing}{slash}")
                assert status == 404 and "/api/audits/RUN_ID" in said["error"], nothing
        for method, code in (("HEAD", 200), ("POST", 405), ("DELETE", 405)):
            assert ask(server, f"{top}/api/runs", "localhost", method, **{"Content-Length": "0"})[0] == code
        status, said = ask(server, f"{top}/api/runs", "evil.example")
        assert status == 421 and "localhost" in json.loads(said)["error"]
    # Pages are where they were.
    status, page = ask(server, f"{root}/report", "localhost")
    assert status == 200 and "<html" in page


def ask(server: Any, path: str, host: str | None, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and text of the answer to a request that says no header but these."""
    said = headers | ({} if host is None else {"Host": host})
    with socket.create_connection(server.place, 30) as asked:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items()), "", ""]
        asked.sendall("\r\n".join(lines).encode())
        answer = http.client.HTTPResponse(asked, method=method)
        answer.begin()
        return answer.status, "" if answer.status == 101 else answer.read().decode(errors="replace")


def handshake(server: Any, host: str, **headers: str) -> tuple[int, str]:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    return ask(server, "/_stcore/stream", host, **upgrade, **key, **headers)


@pytest.mark.slow
def test_only_names_of_this_server_are_answered(sample_audit: Path, start: Callable[..., Any]) -> None:
    server = start(sample_audit, "", "--server.allowedHosts=audits.example", "--server.allowedHosts=*.proxy.example")
    ours = ("127.0.0.1:8501", "localhost", "LOCALHOST:1", "[::1]:8501", "audits.example", "a.proxy.example:443")
    others = ("evil.example", "127.0.0.1.evil.example", "proxy.example", "localhost@evil.example", "localhost:x", "")
    paths = ("/", "/leakage", "/static/x.js", "/media/x.html", "/_stcore/health", "/_stcore/metrics", "/api/runs")
    for host in ours:
        assert ask(server, "/_stcore/health", host)[0] == 200, host
        assert handshake(server, host, Origin=f"http://{host}")[0] == 101, host
    for host in others:
        for path in paths:
            status, said = ask(server, path, host)
            assert status == 421 and "localhost, 127.0.0.1" in said and "uge app --allow-host NAME" in said, (
                host,
                path,
            )
        assert ask(server, "/_stcore/upload_file/a/b", host, "PUT", **{"Content-Length": "0"})[0] == 421, host
        assert handshake(server, host, Origin=f"http://{host}")[0] == 421, host
    assert ask(server, "/", None)[0] in (400, 421)


@pytest.mark.slow
def test_a_page_of_another_server_opens_no_websocket(sample_audit: Path, start: Callable[..., Any]) -> None:
    options = ("--server.allowedHosts=audits.example", "--server.corsAllowedOrigins=https://embeds.example")
    server = start(sample_audit, "", *options)
    for origin in (
        "http://evil.example",
        "null",
        "http://localhost:9",
        "http://127.0.0.1:9",
        "https://x.embeds.example",
    ):
        status, said = handshake(server, "127.0.0.1:8501", Origin=origin)
        assert status == 403 and "server.corsAllowedOrigins" in said, origin
    # A proxy asks by address for the page that it serves under its name.
    for origin in ("http://127.0.0.1:8501", "https://audits.example", "https://embeds.example"):
        assert handshake(server, "127.0.0.1:8501", Origin=origin)[0] == 101, origin


@pytest.mark.slow
def test_no_page_of_another_server_frames_an_answer(sample_audit: Path, start: Callable[..., Any]) -> None:
    with urllib.request.urlopen(start(sample_audit).address, timeout=60) as answer:
        assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
        assert "http" not in answer.headers["Content-Security-Policy"]  # nothing is loaded from elsewhere


def cookie(**content: Any) -> str:
    return "_streamlit_user=" + create_signed_value(SECRET, "_streamlit_user", json.dumps(content)).decode()


@pytest.mark.slow
def test_where_people_sign_in_the_routes_ask_for_their_cookie(seeded: Path, start: Callable[..., Any]) -> None:
    known = {"origin": "http://localhost:8501", "is_logged_in": True, "email": "a@example.org"}
    forged = create_signed_value("another secret", "_streamlit_user", json.dumps(known)).decode()
    server = start(seeded, AUTH)
    for bad in (
        "",
        "_streamlit_user=x",
        f"_streamlit_user={forged}",
        cookie(**known | {"is_logged_in": False}),
        cookie(**known | {"origin": "http://evil.example"}),
    ):
        assert get(server, "/api/runs", Cookie=bad)[0] == 401
    assert get(server, "/api/runs", Cookie=cookie(**known))[0] == 200


@pytest.mark.slow
def test_below_a_base_path_the_routes_ask_for_the_cookie_too(seeded: Path, start: Callable[..., Any]) -> None:
    server = start(seeded, AUTH, "--server.baseUrlPath=audit", base="/audit")
    known = cookie(origin="http://localhost:8501", is_logged_in=True, email="a@example.org")
    for path in ("/audit/api/runs", "/audit/api/runs/", "/audit/api", "/audit/api/x", "/api/runs"):
        status, said = get(server, path)
        assert status == 401 and "sign in" in said["error"], path
    assert get(server, "/audit/api/runs", Cookie=known)[0] == 200


@pytest.mark.browser
def test_signed_out_readers_see_nothing_of_a_page(
    seeded: Path, start: Callable[..., Any], visit: Callable[..., Any]
) -> None:
    from playwright.sync_api import expect

    server = start(seeded, AUTH)
    for page in ("leakage", "", "runs"):
        tab = visit(server, page)
        expect(tab.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(tab.get_by_role("button", name="Sign in")).to_be_visible()
        for seen in ("stDataFrame", "stSelectbox", "stSidebarNav", "stException", "stPlotlyChart"):
            expect(tab.get_by_test_id(seen)).to_have_count(0)


def test_connections_of_a_listener_send_at_once() -> None:
    def accepted() -> int:
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    with socket.socket() as listener, socket.socket() as idle:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert not accepted()
        held = len(list(Path("/dev/fd").iterdir()))
        ui.answer_at_once()
        assert accepted() and not idle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert len(list(Path("/dev/fd").iterdir())) == held


@pytest.mark.alone
def test_no_answer_waits_for_the_browser_to_confirm_the_one_before(seeded: Path, start: Callable[..., Any]) -> None:
    server = http.client.HTTPConnection(start(seeded).address.removeprefix("http://"))
    times = []
    for _ in range(30):
        began = time.monotonic()
        server.request("GET", "/favicon.png")
        assert server.getresponse().read()
        times.append(time.monotonic() - began)
    server.close()
    # Linux puts a confirmation off for 40 ms at least, except on a young connection.
    assert min(times[15:]) < 0.03


@pytest.mark.browser
def test_a_report_leaves_the_memory_when_its_session_ends(
    sample_audit: Path, start: Callable[..., Any], visit: Callable[..., Any]
) -> None:
    server = start(sample_audit, "", "--server.disconnectedSessionTTL=1")
    tab = visit(server, "report")
    with tab.expect_response(lambda r: r.url.startswith(f"{server.address}/media/")) as fetched, tab.expect_download():
        tab.get_by_role("button", name="CSV").click()
    path = fetched.value.url.removeprefix(server.address)
    assert ask(server, path, "localhost")[0] == 200
    tab.close()
    limit = time.monotonic() + 30
    while ask(server, path, "localhost")[0] != 404:
        assert time.monotonic() < limit
        time.sleep(1)


_LISTENER = """
import os, socket, sys
def heard(event, given):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect"):
        name = given[1][0] if event == "socket.connect" and isinstance(given[1], tuple) else given[0]
        if isinstance(name, str):
            with open(os.environ["UGE_TEST_NAMES"], "a") as file:
                print(name, file=file)
sys.addaudithook(heard)
socket.getaddrinfo("localhost", None)  # is heard, so that silence afterwards means something
"""


@pytest.mark.slow
def test_a_server_asks_for_no_name_when_a_foreign_page_calls(
    sample_audit: Path, start: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the server's own process, by Python's audit events, so that it runs where no network of its own can be made."""
    names = tmp_path / "names"
    (tmp_path / "sitecustomize.py").write_text(_LISTENER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv("UGE_TEST_NAMES", str(names))
    server = start(sample_audit)
    assert handshake(server, "127.0.0.1", Origin="http://evil.example")[0] == 403
    assert handshake(server, "evil.example", Origin="http://evil.example")[0] == 421
    assert ask(server, "/", "127.0.0.1")[0] == 200
    asked = set(names.read_text().split())
    assert "localhost" in asked and asked <= {"127.0.0.1", "localhost", "::1"}


@pytest.mark.slow
def test_every_name_asked_of_the_network_is_a_loopbacks() -> None:
    if (reason := resolver.why_not()) is not None:
        pytest.skip(f"no network of its own can be made here: {reason}; the test above hears the server alone")
    assert [(step, fault) for step, fault in resolver.run(0, quick=True) if fault is not None] == []


@pytest.mark.slow
def test_who_has_not_signed_in_is_refused_on_every_route() -> None:
    assert [(step, fault) for step, fault in sign_in.run(0, quick=True) if fault is not None] == []
