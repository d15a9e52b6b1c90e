"""Installs packages, each in an environment of its own, and looks at the page of each: ``script/release``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from hitchpost import __version__

CHROMIUM = "/usr/bin/chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PATIENCE_MS = 30_000
NAME = "released"
PICTURES = Path(__file__).parents[1] / "build" / "release"


@dataclass(frozen=True)
class Installed:
    """``hitch`` of a package, with a home of its own."""

    folder: Path

    def hitch(self, *words: str) -> str:
        argv = [str(self.folder / "venv" / "bin" / "hitch"), *words]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HITCHPOST_", "PYTHON"))}
        places = {"HITCHPOST_HOME": str(self.folder / "home"), "XDG_CONFIG_HOME": str(self.folder / "config")}
        done = subprocess.run(
            argv, cwd=self.folder, env=env | places, capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode:
            raise SystemExit(f"hitch {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def installed(package: Path) -> Iterator[Installed]:
    """In a folder of its own. A package that would build the page there fails: its Node does."""
    with tempfile.TemporaryDirectory(prefix="hitchpost-release-") as name:
        folder = Path(name)
        for program in ("node", "npm"):
            (folder / program).write_text("#!/bin/sh\necho 'the package wants Node' >&2\nexit 1\n")
            (folder / program).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        subprocess.run([*pip, "install", "-qq", str(package.resolve())], cwd=folder, env=env, check=True)
        yield Installed(folder)


def look_at_page(made: Installed, picture: Path) -> None:
    made.hitch("run", "--name", NAME, "--", "sh", "-c", "echo from the package; sleep 1000")
    try:
        link = json.loads(made.hitch("up", "--port", "0", "--json"))["launch_url"]
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.set_default_timeout(PATIENCE_MS)
                expect.set_options(timeout=PATIENCE_MS)
                page.goto(link)
                expect(page).to_have_title(re.compile("Hitchpost"))
                expect(page.locator(".row .name")).to_have_text(NAME)
                page.locator(".row .open-session").click()
                expect(page.locator(".pane .xterm-rows")).to_contain_text("from the package")
                page.screenshot(path=picture)
                browser.close()
        finally:
            made.hitch("down")
    finally:
        made.hitch("rm", "--force", NAME)


def check(package: Path) -> None:
    with installed(package) as made:
        version = made.hitch("--version").split()[-1]
        if version != __version__:
            raise SystemExit(f"{package} has version {version}, expected {__version__}")
        look_at_page(made, PICTURES / f"{package.name}.png")


def main(packages: list[Path]) -> None:
    for package in packages:
        print(f"Trying {package}", flush=True)
        check(package)
    for package in packages:
        print(f"{package.stat().st_size:>9,} bytes  {package}")
    print(f"Pictures of their pages are in {PICTURES}")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
