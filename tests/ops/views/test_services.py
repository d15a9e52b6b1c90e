from __future__ import annotations

import shutil
from typing import Any

import pytest

from hitchpost.agents import catalog
from hitchpost.ops.sessions.create import Wish, create
from hitchpost.ops.views import services
from hitchpost.ops.views.listing import Row, listing
from hitchpost.settings import Settings
from tests.ground import Ground


def test_a_session_that_is_removed_while_one_looks_is_just_not_there(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("claude",)
    wish = Wish(catalog.unknown(argv), argv, str(ground.place), "dev", runtime="docker")
    record = create(str(ground.home), wish, Settings(), actor="test")

    def then_removed(*args: Any, **named: Any) -> list[Row]:
        rows = listing(*args, **named)
        shutil.rmtree(ground.home / "sessions" / record.id)
        return rows

    monkeypatch.setattr(services, "listing", then_removed)
    assert services.overview(str(ground.home))["containers"] == []
