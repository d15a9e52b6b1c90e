"""An owner's token that comes from a file, and is in no home."""

from __future__ import annotations

import httpx2
import pytest

from hitchpost.errors import UsageError
from hitchpost.hub.http.ownertoken import owner_token
from tests.ground import Ground
from tests.hubs import HubProcess

TOKEN = "a1" * 20


def test_whoever_has_the_token_of_the_file_is_an_owner_and_nobody_else(ground: Ground, hub: HubProcess) -> None:
    hub.stop()
    file = ground.place / "token"
    file.write_text(f"{TOKEN}\n")
    ground.configure(f'owner_token_file = "{file}"\n')
    hub.start()
    with httpx2.Client(base_url=hub.url) as client:
        me = client.get("/api/me", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (me.json()["name"], me.json()["role"]) == ("owner", "owner")
        made = client.post("/api/ws-ticket", headers={"Authorization": f"Bearer {TOKEN}"}, json={})
        assert made.status_code == 200
        for other in (TOKEN[:-1], TOKEN.upper(), f"{TOKEN}x"):
            assert client.get("/api/me", headers={"Authorization": f"Bearer {other}"}).status_code == 401
    assert TOKEN not in (ground.home / "hub.log").read_text()
    assert ground.hitch("token", "ls", "--json").json() == []
    hub.stop()
    ground.configure("")
    hub.start()
    with httpx2.Client(base_url=hub.url) as client:
        assert client.get("/api/me", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 401


@pytest.mark.parametrize("text", ["", "short", f"{TOKEN} b", "ä" * 40, "a" * 1001, f"{TOKEN}\n{TOKEN}"])
def test_a_file_without_a_token_that_is_hard_to_guess_is_refused(ground: Ground, text: str) -> None:
    file = ground.place / "token"
    file.write_text(text)
    with pytest.raises(UsageError, match="expected a token of 40 to 1000 letters, digits and signs") as refused:
        owner_token(str(file))
    assert refused.value.hint == "openssl rand -hex 32 makes one"


def test_a_hub_does_not_start_without_the_file_that_its_settings_name(ground: Ground) -> None:
    ground.configure('owner_token_file = "/none"\n')
    said = ground.hitch("up", "--port", "0", check=1).err
    assert "cannot read owner_token_file /none: no such file or directory" in said
    assert owner_token("") is None
