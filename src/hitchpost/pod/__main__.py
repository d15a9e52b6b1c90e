"""Started as ``python -m hitchpost.pod SESSION HOST PORT IDENTITY``, as process 1 of a pod.

``HITCHPOST_HOME`` names the home on the pod's volume, IDENTITY the folder with the pod's certificate.
"""

from __future__ import annotations

from hitchpost.pod.first import main

if __name__ == "__main__":
    main()
