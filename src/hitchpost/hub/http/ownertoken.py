"""A token of an owner that comes from a file, such as a Secret: the same one at every hub of a fleet.

It is in no home, so nobody can take it back there: another file, and a new start of the hubs, do that.
"""

from __future__ import annotations

import os

from hitchpost.errors import UsageError
from hitchpost.hub.http.grants import OWNER, Grant
from hitchpost.hub.http.tokenfile import SCRIPT, Credential, digest
from hitchpost.store import files

NAME = "owner"
SHORTEST, LONGEST = 40, 1000
"""Nobody is to guess it."""


def owner_token(path: str) -> Credential | None:
    """None where the settings name no file. Raises ``UsageError`` for a file that cannot be used."""
    if not path:
        return None
    try:
        text = files.read_bytes(os.path.expanduser(path), 1 << 16, follow=True).decode("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"cannot read owner_token_file {path}: {(error.strerror or str(error)).lower()}") from None
    if not SHORTEST <= len(text) <= LONGEST or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(
            f"expected a token of {SHORTEST} to {LONGEST} letters, digits and signs in one line of {path}",
            "openssl rand -hex 32 makes one",
        )
    return Credential(digest(text), SCRIPT, Grant(OWNER), NAME)
