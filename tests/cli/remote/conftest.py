"""A machine that is far from the hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.remote.far import Far, far_from
from tests.ground import Ground
from tests.hubs import HubProcess


@pytest.fixture
def far(ground: Ground, hub: HubProcess) -> Iterator[Far]:
    with far_from(ground, hub) as made:
        yield made
