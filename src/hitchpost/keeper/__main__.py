"""Started as ``python -I -S …/keeper/__main__.py RUN_FOLDER CHANNEL``, which sees no site-packages.

The run comes through a descriptor, the channel; ``pane`` instead of it means that the keeper is in a pane of tmux.
"""

import gc
import os
import sys

gc.disable()  # what is loaded stays: to look through it again and again would find nothing

if sys.argv[2] != "pane" and os.fork():
    os._exit(0)  # the starter waits for this process only; the keeper is nobody's child

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from hitchpost.keeper.main import main  # noqa: E402
from hitchpost.system.descriptors import open_standard  # noqa: E402

open_standard()
os._exit(main(sys.argv))  # everything is written down: taking the interpreter apart would only hold the locks longer
