"""``hitch usage``: sums of what agents have used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hitchpost.model.usage import Tokens, Turn
from hitchpost.store import usage
from tests.ground import Ground
from tests.hubs import HubProcess


def noted(ground: Ground, session: str = "gone", agent: str = "claude", days_ago: float = 0.0, **more: float) -> None:
    at = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    tokens = Tokens(**{"input": 1000, "cached": 200, "output": 30, **more})  # type: ignore[arg-type]
    usage.note(str(ground.home), Turn(at, session, session, agent, "/project", 1, "large", tokens))


def test_it_is_summed_by_what_is_asked_for(ground: Ground) -> None:
    noted(ground)
    noted(ground, agent="codex", cost_usd=0.5)
    noted(ground, agent="codex", days_ago=40)
    lines = ground.hitch("usage", "--by", "agent").out.splitlines()
    assert [line.split() for line in lines] == [
        ["AGENT", "TURNS", "INPUT", "CACHED", "OUTPUT", "COST"],
        ["claude", "1", "1,000", "200", "30", "-"],
        ["codex", "1", "1,000", "200", "30", "$0.50"],
        ["total", "2", "2,000", "400", "60", "$0.50"],
    ]
    assert ground.hitch("usage", "--since", "50d", "--by", "project", "--json").json()["sums"][0]["turns"] == 3
    (today,) = ground.hitch("usage", "--json", "--since", "1h").json()["sums"]
    assert (today["key"], today["total"]) == (datetime.now().astimezone().date().isoformat(), 2460)
    assert "no agent has told of anything" in ground.hitch("usage", "--since", "2100-01-01").out
    assert "expected a day such as" in ground.hitch("usage", "--since", "soon", check=2).err


def test_of_one_session(ground: Ground) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    noted(ground)
    noted(ground, session=dev.id)
    assert ground.hitch("usage", "dev", "--json").json()["total"]["turns"] == 1
    ground.hitch("usage", "nobody", check=3)
    ground.end(dev)


@pytest.mark.parametrize("by", ["day", "agent", "model", "project", "session"])
def test_the_hub_says_the_same(ground: Ground, hub: HubProcess, by: str) -> None:
    noted(ground)
    noted(ground, agent="codex", days_ago=2)
    said = ground.hitch("usage", "--by", by, "--json").json()
    assert hub.ask("GET", f"/api/usage?by={by}") == said
    assert len(hub.ask("GET", "/api/usage?by=agent&days=1")["sums"]) == 1


def test_who_may_see_one_session_sees_its_sums_only_and_a_scrape_counts_since_the_hub_is_up(
    ground: Ground, hub: HubProcess
) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    noted(ground, days_ago=-0.01)
    noted(ground, session=dev.id, days_ago=-0.01)
    token = ground.hitch("token", "create", "--session", "dev").out.strip()
    with hub.http() as client:
        mine = client.get("/api/usage", headers={"Authorization": f"Bearer {token}"}).json()
        scraped = client.get("/metrics").text
        of_dev = client.get("/api/usage?session=dev").json()
        others = client.get("/api/usage?session=gone", headers={"Authorization": f"Bearer {token}"})
    assert (mine["total"]["turns"], hub.ask("GET", "/api/usage")["total"]["turns"]) == (1, 2)
    assert (of_dev, others.status_code) == (mine, 404)
    assert 'hitchpost_tokens_total{agent="claude",kind="input"} 2000.0' in scraped
    ground.end(dev)


def test_a_scrape_has_what_agents_have_cost_where_they_tell_it_and_names_no_folder(
    ground: Ground, hub: HubProcess
) -> None:
    dev = ground.begin("sleep", "1000", name="dev")
    noted(ground, days_ago=-0.01)
    noted(ground, agent="opencode-acp", days_ago=-0.01, cost_usd=0.0)
    noted(ground, agent="claude-acp", days_ago=-0.01, cost_usd=0.5)
    noted(ground, agent="claude-acp", days_ago=-0.01)
    noted(ground, agent="claude-acp", session=dev.id, days_ago=-0.01, cost_usd=0.25)
    token = ground.hitch("token", "create", "--session", "dev").out.strip()
    with hub.http() as client:
        whole = client.get("/metrics").text
        mine = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    costs = [[line for line in text.splitlines() if line.startswith("hitchpost_cost_usd")] for text in (whole, mine)]
    assert costs == [
        ['hitchpost_cost_usd_total{agent="claude-acp"} 0.75', 'hitchpost_cost_usd_total{agent="opencode-acp"} 0.0'],
        ['hitchpost_cost_usd_total{agent="claude-acp"} 0.25'],
    ]
    assert "/project" not in whole
    ground.end(dev)
