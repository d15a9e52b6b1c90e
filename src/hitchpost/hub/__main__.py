"""``python -m hitchpost.hub`` is the hub's process, as ``hitch up`` starts it."""

import gc
import os
import sys

gc.disable()  # what is imported stays: looking through it while it comes is a tenth of the start
# structlog would import it, for colours that nobody wants, in a sixth of the time that the start takes
sys.modules["rich"] = None  # type: ignore[assignment]

from hitchpost.errors import HitchpostError  # noqa: E402
from hitchpost.hub.address import Address  # noqa: E402
from hitchpost.hub.client import LOG  # noqa: E402
from hitchpost.hub.http.server import run  # noqa: E402
from hitchpost.hub.logfile import LogFile, log, log_to  # noqa: E402
from hitchpost.store.home import home_path  # noqa: E402


def main() -> None:
    log_to(LogFile(os.path.join(home_path(), LOG)))
    try:
        code = run(Address.of_words(sys.argv[1:]))
        os._exit(code)  # a thread that still waits for a session to end is not waited for: the session's keeper goes on
    except HitchpostError as error:
        log.critical(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
