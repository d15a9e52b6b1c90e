"""The pod's own log: standard error, which its cluster keeps."""

from __future__ import annotations

import os

from hitchpost.store import files


def note(text: str) -> None:
    try:
        os.write(2, f"{files.stamp()} {text}\n".encode("utf-8", "replace"))
    except OSError:
        return
