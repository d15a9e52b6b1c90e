"""``hitch user`` and ``hitch token`` for a hub elsewhere."""

from __future__ import annotations

from tests.cli.remote.far import NAME, Far
from tests.ground import Ground


def test_people_and_tokens_are_managed_from_afar_by_an_owner(far: Far, ground: Ground) -> None:
    assert far("user", "add", "anna", "--sessions", "2").out == "anna: member, sessions 2\n"
    assert far("user", "set", "anna", "--role", "viewer").out == "anna: viewer, sessions 2\n"
    assert far("user", "ls").out == ground.hitch("user", "ls").out
    assert far("token", "create", "--user", "anna", "--name", "ci").out.strip()
    found = next(row for row in far("token", "ls", "--json").json() if row["user"] == "anna")
    assert (found["name"], found["role"]) == ("ci", "viewer")
    far("token", "rm", found["id"])
    for wrong in (("token", "rm", found["id"]), ("user", "rm", "nobody")):
        here = ground.hitch(*wrong, check=3).err
        assert far(*wrong, check=3).err == here.replace("; hitch ", f"; hitch --context {NAME} ")
    assert far("user", "rm", "anna").out == "anna: removed, with 0 tokens and sign-ins\n"
