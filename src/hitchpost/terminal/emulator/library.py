"""libghostty-vt and pyghostty, without the quarter second that reading 80 kB of C declarations takes at each start.

They are read when Hitchpost is installed, and kept in ``declarations.py``. Where that is missing, or was made for
another pyghostty, they are read here.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from zlib import crc32

MADE = "hitchpost.terminal.emulator.declarations"
OURS = "int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);"


class Declared:
    """What pyghostty takes for an FFI of cffi, which knows already what it is told to read."""

    def __init__(self) -> None:
        from hitchpost.terminal.emulator.declarations import MADE_FROM, ffi

        vars(self).update({name: getattr(ffi, name) for name in dir(ffi) if not name.startswith("_")})
        self._expected = list(MADE_FROM)

    def cdef(self, text: str) -> None:
        if not self._expected or self._expected.pop(0) != crc32(text.encode()):
            raise ImportError("made for another pyghostty", name=MADE)


def load() -> Any:
    """The FFI with which pyghostty is imported."""
    sys.modules["cffi"] = ModuleType("cffi")
    sys.modules["cffi"].FFI = Declared  # type: ignore[attr-defined]
    try:
        from pyghostty import ffi
    except ImportError as error:
        if error.name != MADE:
            raise
        del sys.modules["cffi"]
        from pyghostty import ffi
    finally:
        sys.modules.pop("cffi", None)
    ffi.cdef(OURS)
    return ffi


def declare(path: str) -> None:
    """Read the declarations, and write ``declarations.py``."""
    import cffi

    told: list[str] = []

    class Listening(cffi.FFI):  # type: ignore[misc]
        def cdef(self, text: str) -> None:
            told.append(text)
            super().cdef(text)

    cffi.FFI = Listening
    from pyghostty import ffi

    ffi.cdef(OURS)
    ffi.set_source(MADE, None)
    ffi.emit_python_code(path)
    with open(path, "a") as file:
        file.write(f"MADE_FROM = {[crc32(text.encode()) for text in told]}\n")


if __name__ == "__main__":
    declare(sys.argv[1])
else:
    ffi = load()
    libc = ffi.dlopen(None)
    from pyghostty import GhosttyError as GhosttyError
    from pyghostty import Terminal as Terminal
    from pyghostty import lib as lib
    from pyghostty._ffi import check as check
    from pyghostty.core import init_sized as init_sized
