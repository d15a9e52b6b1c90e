"""The model is pure: there is nothing that its tests could leave behind, and nothing to look for after each."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def leak_watch() -> None:
    """Stands in for the check of the same name."""
