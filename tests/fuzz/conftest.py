from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.states import States
from tests.ground import Ground


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def states(ground: Ground, kept: Path) -> States:
    """Sessions in every state, in the test's own home."""
    return States(ground, kept)
