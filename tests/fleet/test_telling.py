"""People are told once, whichever hub tells them, and wherever they are connected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.fleet.hubs import Fleet, fleet_of, metric
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.notify.receivers import Receiver, receiver
from tests.support import eventually

AT_ONCE = "dwell_s = 0\ngroup_s = 0\ncooldown_s = 0\n"


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def fleet(ground: Ground, database: str, web: Receiver) -> Iterator[Fleet]:
    ground.configure(f'[notify]\nwebhook_url = "{web.url}/hook"\nwebhook_secret = "s3cret"\n{AT_ONCE}')
    with fleet_of(ground, database) as made:
        yield made


def by_rank(fleet: Fleet) -> tuple[HubProcess, HubProcess]:
    """Who leads, and the other."""
    first, second = sorted(fleet.hubs, key=lambda hub: -metric(hub, "hitchpost_fleet_leads"))
    return first, second


def told(web: Receiver, name: str) -> int:
    """How often somebody was told of a session. What a killed hub had begun comes again, with the same id."""
    messages = [got.json() for got in web.got]
    return len({message["id"] for message in messages if message["title"].startswith(f"{name}:")})


def journal(hub: HubProcess) -> list[dict[str, object]]:
    text = (hub.ground.home / "notify" / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_one_hub_tells_and_who_is_connected_to_the_other_hears_it(fleet: Fleet, web: Receiver):
    leader, other = by_rank(fleet)

    async def scene() -> None:
        async with other.ws() as client:
            session = await asyncio.to_thread(fleet.run, other, "sleep 0.2; exit 3", name="dev")
            heard = await client.until("notification", session.id)
            assert heard["to"] == "browser"
            assert "dev" in heard["title"] + heard["body"]
            await asyncio.to_thread(eventually, lambda: told(web, "dev") == 1)

    asyncio.run(scene())
    eventually(lambda: journal(leader) == journal(other), what="one delivery log")
    assert [line["what"] for line in journal(leader)].count("begun") == 1


def test_when_the_hub_that_tells_is_killed_another_one_tells(fleet: Fleet, web: Receiver):
    leader, other = by_rank(fleet)
    for number, hub in enumerate((other, other, leader)):
        if number == 1:
            leader.kill()
        if number == 2:
            fleet.start(leader)
        fleet.run(hub, "sleep 0.2; exit 3", name=f"dev-{number}")
        eventually(lambda: told(web, f"dev-{number}") == 1)  # noqa: B023
    assert [told(web, f"dev-{number}") for number in range(3)] == [1, 1, 1]
