"""Worktrees are many small files."""

from __future__ import annotations

import pytest

from tests.support import place_in_memory


@pytest.fixture
def scratch_place() -> str:
    return place_in_memory()
