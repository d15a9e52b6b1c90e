"""Wheels and source distributions contain the page, or are not made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = (
    "pyproject.toml",
    "hatch_build.py",
    "README.md",
    "LICENSE",
    ".gitignore",
    "script/help",
    "script/ui",
    "ui/package.json",
)
WEB = "src/hitchpost/web"
PAGE = {"web/index.html", "web/assets/index.js"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a package is made of, with a page of two files that is newer than its sources."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("web", "__pycache__"))
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / WEB / "assets").mkdir(parents=True)
    (folder / WEB / "index.html").write_text("<title>Hitchpost</title>")
    (folder / WEB / "assets" / "index.js").write_text("1")
    return folder


@pytest.fixture
def without_node(tmp_path: Path) -> str:
    """A PATH on which there is no Node."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "env", "dirname", "find", "flock", "touch"):
        found = shutil.which(name)
        assert found is not None
        os.symlink(found, programs / name)
    return str(programs)


def build(folder: Path, target: str, into: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into), *options]
    return subprocess.run(argv, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def page_in(names: list[str]) -> set[str]:
    return {name.partition("/hitchpost/")[2] for name in (f"/{name}" for name in names) if "/hitchpost/web/" in name}


def page_of_wheel(into: Path) -> set[str]:
    [wheel] = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "hitchpost/py.typed" in names
    assert "hitchpost/terminal/emulator/declarations.py" in names
    assert [name for name in names if not name.startswith(("hitchpost/", "hitchpost-"))] == []
    return page_in(names)


def test_a_wheel_contains_the_page(checkout: Path, tmp_path: Path):
    done = build(checkout, "wheel", tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    assert page_of_wheel(tmp_path / "dist") == PAGE


def test_a_wheel_can_be_made_from_the_source_distribution_without_node(
    checkout: Path, tmp_path: Path, without_node: str
):
    assert build(checkout, "sdist", tmp_path / "dist").returncode == 0
    [source] = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    (folder / "ui" / "package.json").touch()  # newer than the page, which counts in a checkout only
    done = build(folder, "wheel", tmp_path / "dist", PATH=without_node)
    assert done.returncode == 0, done.stderr
    assert page_of_wheel(tmp_path / "dist") == PAGE


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_without_the_page_and_without_node_nothing_is_made_and_what_to_do_is_said(
    checkout: Path, tmp_path: Path, without_node: str, target: str
):
    shutil.rmtree(checkout / WEB)
    done = build(checkout, target, tmp_path / "dist", PATH=without_node)
    assert done.returncode == 1
    assert "building the page needs Node 20 or newer, with npm; found none" in done.stderr
    assert "set HITCHPOST_WITHOUT_PAGE=1 to build without the page" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "dist").glob("*")) == []


def test_the_page_is_left_out_loudly_when_that_is_asked_for(checkout: Path, tmp_path: Path):
    done = build(checkout, "wheel", tmp_path / "dist", HITCHPOST_WITHOUT_PAGE="1")
    assert "WARNING: HITCHPOST_WITHOUT_PAGE is set: this package has no page" in done.stderr
    assert page_of_wheel(tmp_path / "dist") == set()


def test_an_editable_install_builds_no_page(checkout: Path, tmp_path: Path, without_node: str):
    shutil.rmtree(checkout / WEB)
    done = build(checkout, "wheel:editable", tmp_path / "dist", "--hooks-only", PATH=without_node)
    assert done.returncode == 0, done.stderr
