"""Whatever a channel hears, from its listener or a webhook: each kind of event goes where it is acted on."""

import logging

from channels_app import listening
from channels_app.channels import get_channel
from channels_app.messages import (
    ChannelNews,
    ChatMoved,
    InboundMessage,
    ReachChanged,
    Skipped,
    WireEvent,
)
from nahida.agent.delivery import change_reach, move_chat
from nahida.agent.intake import accept

logger = logging.getLogger(__name__)


def receive(channel: str, event: WireEvent) -> None:
    """Act on a wire event. When this returns, the wire may forget it."""
    match event:
        case InboundMessage():
            accept(get_channel(channel).complete(event))
        case ChatMoved(old, new):
            move_chat(old, new)
        case ReachChanged():
            change_reach(event)
        case ChannelNews():
            listening.note(channel, event)
            return
        case Skipped(reason):
            logger.info("channel %s: skipped: %s", channel, reason)
    listening.note_heard(channel)
