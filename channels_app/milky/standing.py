"""May the account write to a group? Asked of the protocol end, where an event may have been missed or does not say it."""

from django.utils import timezone

from channels_app.addresses import ChatAddress
from channels_app.channels import ListenError
from channels_app.messages import ReachChanged
from channels_app.milky.client import Line
from channels_app.milky.errors import NOT_FOUND, RefusalError
from channels_app.milky.inbound import ADMINS, GONE, MUTED, instant
from channels_app.milky.segments import node, number, text


async def standing(line: Line, chat: ChatAddress, *, self_id: int) -> tuple[ReachChanged, bool]:
    """Return how a group stands to the account, and whether that is one of its admins. Raises `ListenError`.

    Nothing tells whether all members are silenced: then a send says it.
    """
    try:
        found = await line.ask(
            "get_group_member_info", group_id=int(chat.target_id), user_id=self_id
        )
    except ListenError as error:
        if isinstance(error.__cause__, RefusalError) and error.__cause__.retcode == NOT_FOUND:
            return ReachChanged(chat, GONE), False
        raise
    member = node(found, "member")
    until = instant(number(member, "shut_up_end_time"))
    if until and until > timezone.now():
        return ReachChanged(chat, MUTED, is_muted=True, until=until), False
    return ReachChanged(chat), text(member, "role") in ADMINS
