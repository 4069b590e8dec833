"""The tool that writes to a chat: its own, or from an owner's chat to any other."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from channels_app.addresses import AddressError, ChatAddress
from channels_app.messages import Attachment
from memory_app.turns import Outgoing
from nahida.agent.policy import require
from nahida.agent.tools.base import Effect, Tool, ToolError, TurnScope
from sessions_app.models import Access
from sessions_app.routing import access_of, find_chat

TEXT_LIMIT = 20_000  # characters


class How(StrEnum):
    NOTIFY = "notify"
    RECORD = "record"


class MessageArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: str = Field(description="typed address of the chat, such as milky:group:20001")
    text: str = Field(description="what is sent")
    delivery: How = Field(
        default=How.NOTIFY,
        description="notify only sends; record also keeps the text in that chat's conversation",
    )


def outgoing(
    target: str,
    text: str,
    *,
    files: tuple[Attachment, ...] = (),
    how: How,
    origin: str,
    sender: str,
) -> Outgoing:
    """Check what is to be sent where. Raises `ToolError` with the way out."""
    try:
        address = ChatAddress.target(target)
    except AddressError as error:
        raise ToolError(str(error)) from error
    if not text.strip() and not files:
        raise ToolError("the text is empty: write what is to be sent")
    if len(text) > TEXT_LIMIT:
        raise ToolError(f"the text has {len(text)} characters: at most {TEXT_LIMIT} are sent")
    chat = find_chat(address)
    if chat is not None and access_of(chat) == Access.BLOCKED:
        raise ToolError(f"{address} is blocked by the owner, so nothing is sent there")
    record = how == How.RECORD
    return Outgoing(
        address=address, text=text, files=files, record=record, origin=origin, sender=sender
    )


def sent(message: Outgoing) -> str:
    return f"Message sent to {message.address}"


def _run(arguments: MessageArguments, scope: TurnScope) -> str:
    here = scope.chat.address.with_thread(scope.thread)
    message = outgoing(
        arguments.target,
        arguments.text,
        how=arguments.delivery,
        origin=str(here),
        sender="assistant",
    )
    if find_chat(message.address) != scope.chat:
        require("message to another chat", scope.rights)
    scope.staged.append(message)
    return sent(message)


MESSAGE = Tool(
    name="message",
    description=(
        "Send a text to a chat at once, besides the answer. Answers go to the present chat by "
        "themselves: use this only for something else, or for another chat."
    ),
    arguments=MessageArguments,
    effect=Effect.STAGED,
    run=_run,
)
