"""``script/test``: what it installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.boxes import DOCKER, PODMAN, ROOTLESS
from tests.postgres import PACKAGE

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("program", "package"), (DOCKER | PODMAN | ROOTLESS | PACKAGE).items())
def test_what_engines_and_servers_need_is_installed(program: str, package: str):
    words = (ROOT / "script" / "test").read_text().partition("script/need ")[2].partition("\nscript/")[0].split()
    words = [word for word in words if word != "\\"]
    assert (program, package) in set(zip(words[::2], words[1::2], strict=True))
