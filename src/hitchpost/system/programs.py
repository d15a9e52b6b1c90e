"""Where programs and libraries are looked for: never in the current folder, which may be an agent's."""

from __future__ import annotations


def absolute(folders: str) -> str:
    """A list such as ``PATH`` without what leads on from the current folder, as ``node_modules/.bin`` or an empty entry
    does."""
    return ":".join([folder for folder in folders.split(":") if folder.startswith("/")])
