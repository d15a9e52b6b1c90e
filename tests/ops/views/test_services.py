from __future__ import annotations

import shutil
from typing import Any

import pytest

from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.views import services
from hitchpost.ops.views.listing import Row, listing
from hitchpost.settings import Settings
from tests.ground import Ground


def test_a_session_that_is_removed_while_one_looks_is_just_not_there(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("claude",)
    spec = SessionSpec(str(ground.place), command=argv, name="dev", runtime="docker")
    record = create(str(ground.home), spec, Settings(), actor="test")

    def then_removed(*args: Any, **named: Any) -> list[Row]:
        rows = listing(*args, **named)
        shutil.rmtree(ground.home / "sessions" / record.id)
        return rows

    monkeypatch.setattr(services, "listing", then_removed)
    assert services.overview(str(ground.home))["containers"] == []
