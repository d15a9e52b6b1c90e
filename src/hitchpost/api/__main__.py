"""``python -m hitchpost.api`` is the hub's process, as ``hitch up`` starts it."""

import sys

from hitchpost.api.server import Address, run
from hitchpost.errors import HitchpostError

if __name__ == "__main__":
    try:
        sys.exit(run(Address(sys.argv[1], int(sys.argv[2]))))
    except HitchpostError as error:
        print(f"hitch: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
