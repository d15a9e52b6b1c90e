"""S8, S11 and S13: where the hub listens, who can reach its files, what every answer carries, and what its log says."""

from __future__ import annotations

import json
import subprocess

import pytest

from hitchpost.hub.http.static import A_DAY
from tests.ground import Ground
from tests.hubs import HubProcess, refused
from tests.security.attacks import JSON, PAGES, SIGN_IN, Reply, ask, bearer, host_of, knock, raw, walk, ways
from tests.security.test_files import NOBODY, as_root

CARRIED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ESCAPES = "a\x1b[2J\x1b]0;pwned\x07\r\x9b31m\u202eb"


@pytest.mark.ids("S13")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "*", "127.0.0.1.", "example.com", "0"])
def test_S13_an_address_that_others_can_reach_is_refused(ground: Ground, host: str) -> None:
    done = refused(host)
    assert done.code == 2
    assert json.loads(done.err)["event"].startswith(f"will not listen on {host}")
    assert not (ground.home / "hub.sock").exists()
    assert not (ground.home / "hub.json").exists()


@pytest.mark.ids("S13")
def test_S13_the_command_says_why_it_does_not_listen_there(ground: Ground) -> None:
    for words in (("up",), ("up", "--foreground"), ("up", "--json")):
        answer = ground.hitch(*words, "--host", "0.0.0.0", "--port", "0", check=2)
        assert "will not listen on 0.0.0.0 without TLS" in answer.err
    assert not (ground.home / "hub.sock").exists()


@pytest.mark.ids("S13")
def test_S13_the_hub_listens_on_loopback_only(hub: HubProcess) -> None:
    assert hub.process is not None
    port = int(host_of(hub).rpartition(":")[2])
    listening = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        listening += [row[1] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port]
    assert listening == [f"0100007F:{port:04X}", f"00000000000000000000000001000000:{port:04X}"]


@pytest.mark.ids("S11")
def test_S11_what_the_hub_makes_is_for_its_owner_alone(ground: Ground, hub: HubProcess) -> None:
    hub.token()
    found = {path.name: path.stat().st_mode & 0o777 for path in ground.home.iterdir() if path.name != "hub.log"}
    assert found["hub.sock"] == 0o600
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}


@pytest.mark.ids("S11")
@as_root
def test_S11_another_user_cannot_open_the_hubs_socket_even_where_the_folder_is_open(
    ground: Ground, hub: HubProcess
) -> None:
    for folder in (ground.home, ground.home.parent):
        folder.chmod(0o755)
    script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", script, str(ground.home / "hub.sock")],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PermissionError" in done.stderr
    ground.home.chmod(0o700)


@pytest.mark.ids("S11")
@pytest.mark.parametrize("name", ["hub.lock", "hub.sock", "hub.json", "tokens.json"])
def test_S11_a_planted_link_is_not_followed(ground: Ground, name: str) -> None:
    victim = ground.watch.scratch / "victim"
    victim.write_text("precious\n")
    (ground.home / name).symlink_to(victim)
    if name == "hub.lock":
        done = refused()
        assert (done.code, json.loads(done.err)["event"]) == (
            4,
            f"cannot use {ground.home}/hub.lock: too many levels of symbolic links",
        )
    else:
        hub = HubProcess(ground)
        hub.start()
        assert ask(hub, "GET", "/api/me", [("Authorization", "Bearer x")]).status == 401
        hub.stop()
    assert victim.read_text() == "precious\n"


@pytest.mark.ids("S11")
def test_S11_a_log_that_is_a_link_is_not_written_to(ground: Ground) -> None:
    victim = ground.watch.scratch / "victim"
    victim.write_text("precious\n")
    (ground.home / "hub.log").symlink_to(victim)
    answer = ground.hitch("up", "--port", "0", check=False)
    assert answer.code in (1, 4)
    assert answer.err.startswith("hitch: ")
    assert "hub.log" in answer.err
    assert victim.read_text() == "precious\n"


@pytest.mark.ids("S11")
def test_S11_a_link_to_somebody_elses_tokens_lets_nobody_in(ground: Ground, hub: HubProcess) -> None:
    signed = [bearer(hub)]
    real = ground.watch.scratch / "tokens"
    (ground.home / "tokens.json").rename(real)
    (ground.home / "tokens.json").symlink_to(real)
    assert ask(hub, "GET", "/api/me", signed).status == 401


@pytest.mark.ids("S11")
def test_S11_a_home_that_others_may_write_to_is_refused(ground: Ground) -> None:
    ground.home.chmod(0o777)
    done = refused()
    ground.home.chmod(0o700)
    assert (done.code, "others may write to it (mode 0777)" in done.err) == (4, True)


@pytest.mark.ids("S2", "S5")
def test_every_answer_carries_what_keeps_other_pages_out(hub: HubProcess) -> None:
    answers: list[Reply] = []
    for way in [*ways(), *(("GET", page) for page in PAGES), ("GET", "/assets/x"), ("GET", "/no/such/path")]:
        if way[0] != "WS":
            answers += [walk(hub, way), walk(hub, way, [bearer(hub)]), walk(hub, way, [bearer(hub)], host="evil")]
    answers += [knock(hub), ask(hub, "TRACE", "/api/me", [bearer(hub)]), ask(hub, "PUT", "/api/me", [bearer(hub)])]
    answers += [answer for way in SIGN_IN for answer in (ask(hub, *way, [JSON], b"{}"), ask(hub, *way, [], b"x"))]
    for answer in answers:
        assert {name: answer.header(name) for name in CARRIED} in (CARRIED, {**CARRIED, "Cache-Control": A_DAY})
        policy = answer.header("Content-Security-Policy") or ""
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.header("Server") is None


@pytest.mark.ids("S1", "S5")
def test_trace_and_other_odd_methods_give_nothing_back(hub: HubProcess) -> None:
    for method in ("TRACE", "TRACK", "CONNECT", "PROPFIND", "DEBUG", "PUT"):
        answer = ask(hub, method, "/api/sessions", [bearer(hub), ("X-Canary", "canary")])
        assert (method, answer.status) == (method, 405)
        assert "canary" not in answer.text


@pytest.mark.ids("S8")
def test_S8_escape_codes_given_over_the_api_reach_no_terminal_and_no_log(ground: Ground, hub: HubProcess) -> None:
    wish = {"command": ["sh", "-c", "exit 0"], "folder": str(ground.place), "name": ESCAPES, "description": ESCAPES}
    made = hub.ask("POST", "/api/sessions", wish)["session"]
    other = hub.ask("POST", "/api/sessions", {**wish, "name": "x\n99  forged  running\t\ty"})["session"]
    hub.ask("POST", f"/api/sessions/{made['id']}/stop", {"reason": ESCAPES})
    ask(hub, "GET", "/api/sessions/%1b%5b2J%0a%7b%22event%22:%22forged%22%7d", [bearer(hub)])
    ask(hub, "GET", "/api/sessions", [("User-Agent", ESCAPES[:5]), ("Authorization", "Bearer \x1b[2J")])
    raw(hub, b"\x1b[2J forged\r\n\r\n")
    for words in (("ps", "--all"), ("status",), ("explain", made["id"])):
        shown = ground.hitch(*words)
        assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(shown.out + shown.err), words
        assert not [line for line in shown.out.splitlines() if line.lstrip().startswith("99  forged")]
    rows = ground.hitch("ps", "--all").out.splitlines()
    assert len(rows) == 3, rows
    assert {row["id"] for row in ground.hitch("ps", "--all", "--json").json()} == {made["id"], other["id"]}
    log = hub.log()
    assert not {"\x1b", "\x07", "\r", "\x9b"} & set(log)
    assert "forged" not in [json.loads(line).get("event") for line in log.splitlines() if line.startswith("{")]


@pytest.mark.ids("S11")
def test_S11_the_hub_holds_no_door_open_for_its_children(ground: Ground, hub: HubProcess) -> None:
    """A session started by the hub has none of the hub's sockets and files."""
    script = "ls -l /proc/self/fd > fds; echo >> fds"
    made = hub.ask("POST", "/api/sessions", {"command": ["sh", "-c", script], "folder": str(ground.place)})["session"]
    held = ground.said("fds")
    assert "socket:" not in held
    assert str(ground.home) not in held
    hub.ask("POST", f"/api/sessions/{made['id']}/stop")
