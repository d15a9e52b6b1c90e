"""Makes what a package has beside its sources: the page, and the emulator's declarations, read beforehand.

A package without the page would be found out too late. Without the declarations it is only slower.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT_PAGE = "HITCHPOST_WITHOUT_PAGE"
MISSING = f"""
The page could not be built (see above), and Hitchpost's hub is of little use without it. You can
  - install Node 20 or newer, with npm, and build again;
  - build from a source distribution, which contains the page;
  - set {WITHOUT_PAGE}=1 to build without the page. Everything but the page will work.
"""


EMULATOR = "src/hitchpost/terminal/emulator"


class BuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._declare(build_data)
        if version != "editable":  # script/ui builds the page of a checkout
            self._build_page(build_data)

    def _declare(self, build_data: dict[str, Any]) -> None:
        program, made = (f"{self.root}/{EMULATOR}/{name}.py" for name in ("library", "declarations"))
        if subprocess.run([sys.executable, program, made], stdout=sys.stderr, check=False).returncode:
            print("WARNING: the emulator's declarations could not be read; it will start slower", file=sys.stderr)
            return
        build_data["artifacts"].append(f"/{EMULATOR}/declarations.py")

    def _build_page(self, build_data: dict[str, Any]) -> None:
        if os.environ.get(WITHOUT_PAGE):
            print(f"WARNING: {WITHOUT_PAGE} is set: this package has no page", file=sys.stderr)
            return
        root = Path(self.root)
        unpacked = (root / "PKG-INFO").exists() and (root / "src/hitchpost/web/index.html").exists()
        if not unpacked and subprocess.run([str(root / "script/ui")], stdout=sys.stderr, check=False).returncode:
            raise SystemExit(MISSING)
        build_data["artifacts"].append("/src/hitchpost/web/**")
