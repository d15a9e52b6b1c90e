"""``/api/notifications``: what people are told, by which ways, and what became of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from hitchpost.errors import HitchpostError
from hitchpost.hub.http import schemas
from hitchpost.hub.http.depends import Actor
from hitchpost.hub.notifier import Notifier
from hitchpost.notify import journal
from hitchpost.notify.channels import family
from hitchpost.notify.push import subscription
from hitchpost.settings import NEWS_KINDS, NOTIFY_CHANNELS

router = APIRouter()


class NotificationsOff(HitchpostError):
    """Raised when the hub could not use its notification files when it started."""

    http_status = 503
    code = "unavailable"


class NoSuchSubscription(HitchpostError):
    """Raised when no browser has subscribed under that id."""

    http_status = 404
    code = "not_found"


async def notifier_of(request: Request) -> Notifier:
    notifier: Notifier | None = getattr(request.app.state, "notifier", None)
    if notifier is None or not notifier.can_be_asked:
        raise NotificationsOff("notifications are off; the hub's log says why")
    return notifier


TheNotifier = Annotated[Notifier, Depends(notifier_of)]
SubscriptionId = Annotated[str, Path(max_length=64)]


@router.get("/api/notifications", response_model=schemas.Notifications)
async def notifications(notifier: TheNotifier) -> dict[str, Any]:
    return await shape_of(notifier)


@router.put("/api/notifications", response_model=schemas.Notifications)
async def choose(notifier: TheNotifier, body: schemas.NotificationChoices) -> dict[str, Any]:
    """Only what is given changes. Addresses, secrets and commands are set in config.toml."""
    await notifier.choose(body.model_dump(exclude_none=True))
    return await shape_of(notifier)


@router.post("/api/notifications/subscriptions", response_model=schemas.SubscriptionMade, status_code=201)
async def subscribe(notifier: TheNotifier, body: schemas.NewSubscription, actor: Actor) -> dict[str, Any]:
    """A browser's Web Push subscription, as ``PushSubscription.toJSON()`` gives it."""
    hosts = notifier.options.get("push_hosts", ())
    made = await notifier.do(subscription, body.endpoint, body.keys.p256dh, body.keys.auth, hosts, actor)
    await notifier.subscribe(made)
    return {"id": made.id}


@router.delete("/api/notifications/subscriptions/{subscription}", status_code=204)
async def unsubscribe(notifier: TheNotifier, subscription: SubscriptionId) -> Response:
    if not await notifier.unsubscribe(subscription):
        raise NoSuchSubscription("no browser has subscribed under that id")
    return Response(status_code=204)


@router.post("/api/notifications/test", response_model=list[schemas.NotificationOutcome])
async def test(notifier: TheNotifier, body: schemas.NotificationTest) -> list[dict[str, Any]]:
    """Send a message now, by every channel that is on, or by one."""
    return [asdict(one) for one in await notifier.test(body.channel)]


@router.get("/api/notifications/log", response_model=list[dict[str, Any]])
async def delivery_log(notifier: TheNotifier, last: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[dict[str, Any]]:
    """The newest lines of the delivery log, the oldest of them first."""
    found: list[dict[str, Any]] = await notifier.do(journal.lines, notifier.journal.path)
    return found[-last:]


async def shape_of(notifier: Notifier) -> dict[str, Any]:
    options, rules = notifier.options, notifier.options.rules
    there: dict[str, list[str]] = {}
    for channel in notifier.all_channels():
        there.setdefault(family(channel), []).append(channel.where)
    listed = [
        {
            "name": name,
            "ready": name in there,
            "on": name not in options.off,
            "where": ", ".join(sorted(set(there.get(name, ())))),
        }
        for name in NOTIFY_CHANNELS
    ]
    return {
        "kinds": rules.kinds,
        "every_kind": NEWS_KINDS,
        "sessions": rules.sessions,
        "dwell_s": rules.dwell_s,
        "cooldown_s": rules.cooldown_s,
        "group_s": rules.group_s,
        "quiet_hours": options.quiet_hours,
        "channels": listed,
        "push_key": await notifier.do(notifier.subscriptions.public_key),
        "subscriptions": [
            {"id": one.id, "created_at": one.created_at, "by": one.by} for one in notifier.subscriptions.all.values()
        ],
    }
