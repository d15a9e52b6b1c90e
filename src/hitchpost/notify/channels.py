"""Which ways to tell there are, as the settings have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitchpost.notify.channel import Channel
from hitchpost.notify.command import Command, Desktop
from hitchpost.notify.ntfy import Ntfy
from hitchpost.notify.options import NO_CONTACT, Options
from hitchpost.notify.published import BROWSER, TERMINAL, Published
from hitchpost.notify.push import Push, Subscriptions
from hitchpost.notify.webhook import Webhook

Publish = Callable[[dict[str, Any]], bool]


def channels(
    options: Options, subscriptions: Subscriptions, publish: Publish, forget: Callable[[str], object]
) -> list[Channel]:
    """Those that are set up, whether they are switched off or not."""
    get = options.get
    contact = get("push_contact", NO_CONTACT)
    found: list[Channel] = [Published(BROWSER, publish)]
    found += [Push(to, subscriptions.key, contact, forget) for to in subscriptions.all.values()]
    if url := get("ntfy_url", ""):
        found.append(Ntfy(url, get("ntfy_token", "")))
    if url := get("webhook_url", ""):
        found.append(Webhook(url, get("webhook_secret", "")))
    if argv := get("command", ()):
        found.append(Command(tuple(argv)))
    if get("desktop", False):
        found.append(Desktop())
    found.append(Published(TERMINAL, publish))
    return found


def family(channel: Channel) -> str:
    """The name that switches it off."""
    return channel.name.partition(":")[0]
