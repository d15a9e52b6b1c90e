from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.processes import Fleet, fleet_of
from tests.ground import Ground


@pytest.fixture
def fleet(ground: Ground) -> Iterator[Fleet]:
    """Sessions in pods that are plain processes, and the links of a hub to them."""
    with fleet_of(ground) as made:
        yield made
