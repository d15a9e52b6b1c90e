"""Links that sign a browser in, as QR codes and in a browser. They are secrets: no other user may see one."""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

from hitchpost.cli.common import say
from hitchpost.hub.address import LOOPBACKS
from hitchpost.store import files
from hitchpost.system.programs import absolute

OPENERS = ("xdg-open", "open", "wslview")
OPEN_FILE = "open.html"


def show_code(url: str) -> None:
    """A QR code, for a phone's camera: in a terminal, and where a phone could reach the hub."""
    if sys.stdout.isatty() and not is_only_here(url):
        print_code(url)


def is_only_here(url: str) -> bool:
    """Whether it leads nowhere from another machine."""
    return urlsplit(url).hostname in LOOPBACKS


def print_code(url: str) -> None:
    import segno

    segno.make(url, error="l").terminal(sys.stdout, compact=True)


def open_page(home: str, url: str) -> None:
    """In a browser, by way of a file: what a program is started with, every user of the machine can see."""
    path = os.path.join(home, OPEN_FILE)
    text = f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">\n'
    files.replace_file(path, text.encode(), durable=False)
    folders = absolute(os.environ.get("PATH", ""))
    found = next(filter(None, (shutil.which(name, path=folders) for name in OPENERS)), None)
    if found is None:
        say(f"no browser was found ({', '.join(OPENERS)}); open the link yourself")
        return
    devnull = subprocess.DEVNULL
    subprocess.Popen([found, path], stdin=devnull, stdout=devnull, stderr=devnull, start_new_session=True)
