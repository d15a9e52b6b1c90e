"""``hitch user``, and tokens and links of people, with a hub and without one."""

from __future__ import annotations

from hitchpost.hub.http.tokenfile import TokenFile
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.security.attacks import ask, sign_in
from tests.support import Hitch


def test_people_are_added_changed_listed_and_removed_without_a_hub(ground: Ground, hitch: Hitch) -> None:
    assert hitch("user", "add", "Anna", "--sessions", "3", "--memory", "8Gi").out == (
        "anna: member, sessions 3, memory 8Gi\n"
    )
    made = hitch("user", "add", "olga@example.org", "--role", "owner", "--json").json()
    assert (made["name"], made["role"], made["quota"]) == ("olga@example.org", "owner", {})
    assert hitch("user", "set", "anna", "--role", "viewer", "--sessions", "none", "--cpu", "500m").out == (
        "anna: viewer, cpu 0.5, memory 8Gi\n"
    )
    assert hitch("user", "set", "anna").out == "anna: viewer, cpu 0.5, memory 8Gi\n"
    rows = [line.split() for line in hitch("user", "ls").out.splitlines()]
    assert rows[0] == ["NAME", "ROLE", "SESSIONS", "CPU", "MEMORY", "STORAGE", "CREATED"]
    assert rows[1][:6] == ["anna", "viewer", "-", "-/0.5", "-/8Gi", "-"]
    assert [row["name"] for row in hitch("user", "ls", "--json").json()] == ["anna", "olga@example.org"]
    assert "anna is there already, as viewer" in hitch("user", "add", "anna", check=4).err
    assert "no user 'nobody'" in hitch("user", "rm", "nobody", check=3).err
    assert "expected memory to be an amount" in hitch("user", "set", "anna", "--memory", "lots", check=2).err
    assert "expected a name of letters" in hitch("user", "add", "a b", check=2).err
    assert "cannot be a person's name" in hitch("user", "add", "hub", check=2).err
    token = hitch("token", "create", "--user", "anna", "--name", "ci").out.strip()
    hitch("token", "create", "--user", "olga@example.org", "--role", "viewer")
    hitch("token", "create")
    tokens = hitch("token", "ls", "--json").json()
    assert [(row["user"], row["role"]) for row in tokens] == [
        ("anna", "viewer"), ("olga@example.org", "viewer"), (None, "owner"),
    ]  # fmt: skip
    assert hitch("token", "ls").out.split()[:5] == ["ID", "KIND", "NAME", "USER", "ROLE"]
    assert token not in (ground.home / "tokens.json").read_text()
    assert "no user 'nobody'" in hitch("token", "create", "--user", "nobody", check=3).err
    assert "a member is somebody" in hitch("token", "create", "--role", "member", check=4).err
    assert hitch("user", "rm", "anna", "olga@example.org").out == (
        "anna: removed, with 1 tokens and sign-ins\nolga@example.org: removed, with 1 tokens and sign-ins\n"
    )
    assert [row["user"] for row in hitch("token", "ls", "--json").json()] == [None]
    assert TokenFile(str(ground.home)).people() == []


def test_a_link_signs_somebody_in_as_who_they_are(ground: Ground, hub: HubProcess, hitch: Hitch) -> None:
    hitch("user", "add", "vera", "--role", "viewer")
    page = sign_in(hub, user="vera")
    me = ask(hub, "GET", "/api/me", page.signed).json()
    assert (me["user"], me["role"], me["may"]) == ("vera", "viewer", [])
    assert "#code=" in hitch("link", "--user", "vera", "--json").json()["launch_url"]
    assert "no user 'nobody'" in hitch("link", "--user", "nobody", check=3).err
    assert "a member is somebody" in hitch("link", "--role", "member", check=4).err
    assert hitch("user", "ls").out.splitlines()[1].split()[:3] == ["vera", "viewer", "0"]
