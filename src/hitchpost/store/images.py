"""``images`` of a session: the pictures that went with prompts, each named by what it holds.

What it is follows from its first bytes alone, when it is kept and again when it is read: nobody's word for it counts.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

from hitchpost.errors import Refused, UsageError
from hitchpost.store import files

IMAGES = "images"
TYPES = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
MOST_IMAGES, MOST_BYTES = 4, 5 << 19
"""Of one prompt: how many, and how large they are together."""
MOST_KEPT_BYTES = 64 << 20
"""Of one session. Further ones are refused."""
LETTERS = 32


def ending_of(data: bytes) -> str:
    """How the name of such a file ends; empty for what is no image that agents take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def check(images: tuple[bytes, ...]) -> None:
    """Raises ``UsageError`` for what cannot go with a prompt."""
    size = sum(map(len, images))
    if len(images) > MOST_IMAGES:
        raise UsageError(f"expected at most {MOST_IMAGES} images, but got {len(images)}", field="images")
    if size > MOST_BYTES:
        raise UsageError(f"the images have {size} bytes, at most {MOST_BYTES} can go with a prompt", field="images")
    if not all(map(ending_of, images)):
        raise UsageError("expected images to be PNG, JPEG, GIF or WebP, but got something else", field="images")


def keep(session_folder: str, images: tuple[bytes, ...]) -> list[str]:
    """The names of images that were checked. Raises ``Refused`` when full.

    They stay, even if their prompt is refused then: another one may have the same.
    """
    folder = os.path.join(session_folder, IMAGES)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    known = _sizes(folder)
    names = {f"{sha256(data).hexdigest()[:LETTERS]}.{ending_of(data)}": data for data in images}
    new = {name: data for name, data in names.items() if name not in known}
    if sum(known.values()) + sum(map(len, new.values())) > MOST_KEPT_BYTES:
        raise Refused(f"the session keeps {MOST_KEPT_BYTES >> 20} MiB of images already, and takes no more")
    for name, data in new.items():
        files.replace_file(os.path.join(folder, name), data, durable=False)
    return list(names)


def _sizes(folder: str) -> dict[str, int]:
    """By name, without what another prompt is about to write."""
    sizes = {}
    for name in os.listdir(folder):
        if not name.startswith("."):
            with suppress(FileNotFoundError):
                sizes[name] = os.lstat(os.path.join(folder, name)).st_size
    return sizes


def read(session_folder: str, name: str) -> tuple[bytes, str]:
    """An image, and its type. Raises ``files.NoFile``, ``files.Unreadable`` or ``OSError``."""
    path = os.path.join(session_folder, IMAGES, name)
    stem, _, ending = name.partition(".")
    if ending not in TYPES or len(stem) != LETTERS or not stem.isalnum():
        raise files.Missing(path)
    data = files.read_bytes(path, MOST_BYTES)
    if ending_of(data) != ending:
        raise files.Unreadable(path, f"expected a {ending} image, but got something else")
    return data, TYPES[ending]
