"""``python -m hitchpost`` is ``hitch``."""

from hitchpost.cli.main import main

if __name__ == "__main__":
    main()
