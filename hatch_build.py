"""Puts the page into wheels and source distributions: a package without it would be found out too late."""

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


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # script/ui builds the page of a checkout
        if os.environ.get(WITHOUT_PAGE):
            print(f"WARNING: {WITHOUT_PAGE} is set: this package has no page", file=sys.stderr)
            return
        root = Path(self.root)
        unpacked = (root / "PKG-INFO").exists() and (root / "src/hitchpost/web/index.html").exists()
        if not unpacked and subprocess.run([str(root / "script/ui")], stdout=sys.stderr, check=False).returncode:
            raise SystemExit(MISSING)
        build_data["artifacts"].append("/src/hitchpost/web/**")
