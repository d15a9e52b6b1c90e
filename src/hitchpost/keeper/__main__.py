"""Started as ``python -I -S …/keeper/__main__.py RUN_FOLDER SPEC_FD``, which sees no site-packages."""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from hitchpost.keeper.main import main
from hitchpost.system.descriptors import open_standard

open_standard()
os._exit(main(sys.argv))  # everything is written down: taking the interpreter apart would only hold the locks longer
