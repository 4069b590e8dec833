"""Ask the model, run the tools it wants, ask again: until it answers."""

from collections.abc import Callable, Sequence

from nahida.agent.tools.base import Toolbox
from nahida.agent.vocabulary import CallRecord, Message, Model, Reply

LAST_ROUND = "You have used all your tool calls for this message. Answer now with what you have."


def converse(
    model: Model,
    messages: Sequence[Message],
    *,
    toolbox: Toolbox,
    rounds: int,
    on_text: Callable[[str], None],
    record: Callable[[CallRecord], None],
    check: Callable[[], None],
    deadline: float,
) -> Reply:
    """Return the model's answer after at most `rounds` rounds of tools.

    `check` is called before each request and each tool; what it raises ends the conversation.
    """
    said = list(messages)
    for spent in range(rounds + 1):
        check()
        last = spent == rounds
        if last and spent:
            said.append(Message(role="user", text=LAST_ROUND))
        reply = model.ask(
            said,
            tools=() if last else toolbox.specs,
            on_text=on_text,
            record=record,
            deadline=deadline,
        )
        if last or not reply.tool_calls:
            return reply
        said.append(_spoken(reply))
        for call in reply.tool_calls:
            check()
            said.append(Message(role="tool", text=toolbox.run(call), tool_call_id=call.id))
    raise AssertionError("the last round returns")


def _spoken(reply: Reply) -> Message:
    return Message(
        role="assistant",
        text=reply.text,
        tool_calls=reply.tool_calls,
        reasoning=reply.reasoning,
        reasoning_field=reply.reasoning_field,
    )
