"""One truth at one moment: every surface says the same of a session, whatever has just happened to it."""

from __future__ import annotations

import os
import random

import pytest

from tests.boxes import Boxed
from tests.ground import Ground
from tests.truth.world import World

LONG = "LONG" in os.environ
"""Set by ``script/faults --long``."""
EVENTS = 60 if LONG else 6
SEEDS = (*range(20 if LONG else 2), random.randrange(1 << 32))

seeds = pytest.mark.parametrize("seed", SEEDS, ids=[*map(str, SEEDS[:-1]), "by chance"])


@pytest.mark.long
@pytest.mark.timeout(900)
@seeds
def test_all_surfaces_say_the_same_after_any_event(ground: Ground, seed: int) -> None:
    happens(World(ground, seed, ("local", "tmux")), seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@seeds
def test_all_surfaces_say_the_same_of_containers(ground: Ground, boxed: Boxed, seed: int) -> None:
    happens(World(ground, seed, ("docker", "local"), boxed), seed)


def happens(world: World, seed: int) -> None:
    try:
        for _ in range(EVENTS):
            wrong = world.event()
            assert wrong == [], "\n".join([f"seed {seed}; what happened:", *world.story, "what was said:", *wrong])
    finally:
        world.close()
