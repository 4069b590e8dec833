"""Webhooks: where a platform that pushes its events puts them. Nothing is stored before the channel has verified the request."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router

from channels_app.channels import get_channel
from nahida.agent.receive import receive as act_on
from nahida.gateway.auth import require_small
from nahida.gateway.problems import InvalidRequestError, NotFoundError

router = Router(tags=["webhooks"])


@router.post("/{kind}/{channel}", auth=None, include_in_schema=False)
def receive(request: HttpRequest, kind: str, channel: str) -> HttpResponse:
    """Take one event in and answer an empty 200: only then may the platform forget it."""
    configured = settings.CHANNELS.get(channel)
    if configured is None or configured.kind != kind:
        raise NotFoundError("channel", channel)
    instance = get_channel(channel)
    require_small(request)
    instance.verify(request)
    act_on(channel, instance.parse(_event(request)))
    return HttpResponse()


def _event(request: HttpRequest) -> dict[str, Any]:
    try:
        event = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the body is not JSON") from error
    if not isinstance(event, dict):
        raise InvalidRequestError("the body is not a JSON object")
    return event
