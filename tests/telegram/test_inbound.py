"""An update read as what happened in a chat: who, where, what, and whether the bot is meant."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiogram.types import Update as AiogramUpdate
from pydantic import BaseModel
from telegram import Update as PtbUpdate

from channels_app.addresses import ChatAddress
from channels_app.messages import (
    Attachment,
    ChatMoved,
    InboundMessage,
    Part,
    ReachChanged,
    Sender,
    Skipped,
    WireEvent,
)
from channels_app.telegram.inbound import Me, parse
from tests.telegram import contents
from tests.telegram.contents import GROUP, MO, NEWS, entity

SAMPLES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("samples.json").read_text(encoding="utf-8")
)
ME = Me(42000001, "nahida_bot")
FORUM = {"id": -1001234500001, "type": "supergroup", "title": "Forum", "is_forum": True}
PRIVATE = {"id": 5550002, "type": "private", "first_name": "Mo"}


def read(update: Any) -> WireEvent:
    return parse(update, channel="telegram", me=ME)


def event(chat: dict[str, Any] = GROUP, kind: str = "message", **fields: Any) -> WireEvent:
    message = {"message_id": 88, "from": MO, "chat": chat, "date": 1790000000, "text": "hi"}
    return read({"update_id": 1, kind: {**message, **fields}})


def message(chat: dict[str, Any] = GROUP, **fields: Any) -> InboundMessage:
    found = event(chat, **fields)
    assert isinstance(found, InboundMessage), found
    return found


def skipped(chat: dict[str, Any] = GROUP, kind: str = "message", **fields: Any) -> str:
    found = event(chat, kind, **fields)
    assert isinstance(found, Skipped), found
    return found.reason


def test_it_reads_a_private_text() -> None:
    found = read(SAMPLES[0])

    assert isinstance(found, InboundMessage)
    assert found.address == ChatAddress("telegram", "private", "5550001")
    assert (found.text, found.addressed) == ("你好 🌱 nahida", True)
    assert found.sender == Sender("telegram:user:5550001", "Lin")
    assert found.sent_at == datetime.fromtimestamp(1790000000, UTC)
    assert (found.event_key, found.message_id) == ("msg:5550001:11", "11")


@pytest.mark.parametrize(
    ("chat", "address"),
    [
        (PRIVATE, "telegram:private:5550002"),
        ({"id": -77001, "type": "group", "title": "Old"}, "telegram:group:-77001"),
        (GROUP, "telegram:group:-1001234500002"),
    ],
)
def test_it_names_each_kind_of_chat(chat: dict[str, Any], address: str) -> None:
    assert str(message(chat).address) == address


def test_it_reads_a_post_of_a_channel() -> None:
    found = read(SAMPLES[5])

    assert isinstance(found, InboundMessage)
    assert str(found.address) == "telegram:channel:-1001234500003"
    assert (found.sender, found.addressed) == (Sender(name="News"), False)


class TestTopics:
    def test_it_reads_a_topic(self) -> None:
        found = message(FORUM, message_thread_id=17, is_topic_message=True)

        assert str(found.address) == "telegram:group:-1001234500001:topic:17"

    def test_it_reads_a_topic_of_a_private_chat(self) -> None:
        found = message(PRIVATE, message_thread_id=3, is_topic_message=True)

        assert str(found.address) == "telegram:private:5550002:topic:3"

    def test_it_takes_no_thread_of_replies_for_a_topic(self) -> None:
        """A thread id without the topic's mark names the root of a discussion."""
        assert message(GROUP, message_thread_id=80).address.thread_id == ""

    def test_it_gives_general_no_thread(self) -> None:
        """With or without its number and mark: what is sent to topic 1 is refused."""
        for fields in ({}, {"message_thread_id": 1}, {"message_thread_id": 205}):
            assert message(FORUM, **fields).address.thread_id == ""
        marked = message(FORUM, message_thread_id=1, is_topic_message=True)
        assert marked.address.thread_id == ""

    def test_it_is_not_addressed_by_the_root_of_its_topic(self) -> None:
        """In a topic that the bot opened every message says that it answers the bot."""
        root = {
            "message_id": 17,
            "from": {"id": ME.id, "is_bot": True, "first_name": "Nahida"},
            "chat": FORUM,
            "date": 1,
            "forum_topic_created": {"name": "Help", "icon_color": 1},
        }

        found = message(FORUM, message_thread_id=17, is_topic_message=True, reply_to_message=root)

        assert (found.addressed, found.reply_to, found.quote) == (False, "", "")


class TestAddressed:
    def test_it_hears_every_private_word(self) -> None:
        assert message(PRIVATE).addressed

    def test_it_does_not_hear_what_people_say_to_each_other(self) -> None:
        assert not message(GROUP, text="nahida_bot is nice").addressed

    def test_it_is_addressed_by_its_name_behind_an_emoji(self) -> None:
        """Offsets are UTF-16 units."""
        found = message(
            GROUP, text="👍🏽 @Nahida_Bot 再说一次", entities=[entity("mention", 5, 11)]
        )

        assert found.addressed

    def test_it_is_not_addressed_by_a_longer_name(self) -> None:
        found = message(GROUP, text="@nahida_bot_2 hi", entities=[entity("mention", 0, 13)])

        assert not found.addressed

    def test_it_is_addressed_by_its_number(self) -> None:
        mention = entity("text_mention", 0, 6, user={"id": ME.id, "is_bot": True})

        assert message(GROUP, text="Nahida hi", entities=[mention]).addressed

    def test_it_is_addressed_by_a_reply_to_its_own_words(self) -> None:
        own = {"message_id": 80, "from": {"id": ME.id}, "chat": GROUP, "text": "the answer"}

        found = message(GROUP, reply_to_message=own)

        assert (found.addressed, found.reply_to, found.quote) == (True, "80", "the answer")

    def test_it_is_not_addressed_by_a_reply_to_somebody_else(self) -> None:
        other = {"message_id": 80, "from": MO, "chat": GROUP, "text": "I said"}

        assert not message(GROUP, reply_to_message=other).addressed

    @pytest.mark.parametrize("text", ["/ask", "/ask@nahida_bot", "/ask@NAHIDA_bot"])
    def test_it_is_addressed_by_a_command(self, text: str) -> None:
        command = entity("bot_command", 0, len(text))

        found = message(GROUP, text=f"{text} why", entities=[command])

        assert (found.addressed, found.text) == (True, "/ask why")

    def test_it_takes_a_command_with_its_argument_on_the_next_line(self) -> None:
        command = entity("bot_command", 0, 15)

        assert (
            message(GROUP, text="/new@nahida_bot\nPlans", entities=[command]).text == "/new\nPlans"
        )

    def test_it_is_addressed_by_a_command_with_its_name_anywhere(self) -> None:
        named, bare = "please /ask@nahida_bot", "please /ask"

        found = message(GROUP, text=named, entities=[entity("bot_command", 7, 15)])
        talk = message(GROUP, text=bare, entities=[entity("bot_command", 7, 4)])

        assert (found.addressed, found.text, talk.addressed) == (True, named, False)

    def test_it_leaves_the_commands_of_other_bots_alone(self) -> None:
        text = "/new@other_bot"
        own = {"message_id": 80, "from": {"id": ME.id}, "chat": GROUP, "text": "the answer"}

        for fields in ({}, {"reply_to_message": own}):
            command = entity("bot_command", 0, len(text))
            found = message(GROUP, text=text, entities=[command], **fields)
            assert (found.addressed, found.text) == (False, text)

    def test_it_knows_no_command_by_the_beginning_of_a_name(self) -> None:
        text = "/new@nahida_bot_2"

        found = message(GROUP, text=text, entities=[entity("bot_command", 0, len(text))])

        assert (found.addressed, found.text) == (False, text)

    @pytest.mark.parametrize("text", ["/ask", "@nahida_bot"])
    @pytest.mark.parametrize(
        "passed_on", [contents.AROUND["from a channel"], contents.AROUND["for a channel"]]
    )
    def test_it_is_not_addressed_by_words_that_are_passed_on(
        self, text: str, passed_on: Any
    ) -> None:
        marks = [entity("bot_command", 0, 4), entity("mention", 0, 11)]

        assert not message(GROUP, text=text, entities=marks, **passed_on).addressed


class TestSenders:
    @pytest.mark.parametrize(
        "sender",
        [
            {"id": 1087968824, "is_bot": True, "first_name": "Group"},
            {"id": 136817688, "is_bot": True, "first_name": "Channel"},
        ],
    )
    def test_it_gives_nobody_s_account_to_who_hides_behind_a_chat(self, sender: Any) -> None:
        found = message(GROUP, **{"from": sender, "sender_chat": GROUP})

        assert found.sender == Sender(name="Plain")

    def test_it_gives_no_account_to_an_automatic_forward(self) -> None:
        sender = {"id": 777000, "is_bot": False, "first_name": "Telegram"}

        found = message(
            GROUP, **{"from": sender, "sender_chat": NEWS, "is_automatic_forward": True}
        )

        assert (found.sender.account, found.forwarded_from) == ("", "News")

    def test_it_knows_itself(self) -> None:
        assert message(GROUP, **{"from": {"id": ME.id, "is_bot": True}}).sender.is_self

    def test_it_ignores_other_bots(self) -> None:
        other: Any = {"id": 42000009, "is_bot": True, "first_name": "Loud"}

        assert "another bot" in skipped(GROUP, "message", **{"from": other})


class TestContent:
    def test_it_reads_a_picture_with_its_caption(self) -> None:
        found = read(SAMPLES[3])

        assert isinstance(found, InboundMessage)
        (picture,) = found.attachments
        assert found.text == "这是什么？"
        assert picture == Attachment(
            "image", "1280x960", platform_id="AgAC-large", mime="image/jpeg", size=150000
        )

    def test_it_reads_a_document_by_its_name(self) -> None:
        document = {"file_id": "d1", "file_name": "a.pdf", "mime_type": "application/pdf"}

        (found,) = message(GROUP, text=None, document=document).attachments

        assert (found.kind, found.name, found.mime) == ("file", "a.pdf", "application/pdf")

    def test_it_reads_a_live_photo_as_the_photo_that_it_is(self) -> None:
        found = message(GROUP, text=None, **contents.READABLE["live photo"])

        assert [(file.kind, file.platform_id) for file in found.attachments] == [
            ("image", "id-large")
        ]

    def test_it_reads_an_animation_once(self) -> None:
        file = {"file_id": "a1", "file_name": "a.mp4", "width": 10, "height": 20, "duration": 3}

        found = message(GROUP, text=None, animation=file, document=file)

        assert [(each.kind, each.text) for each in found.attachments] == [("video", "10x20 3 s")]

    @pytest.mark.parametrize(
        ("fields", "shown"),
        [
            ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[location 52.50000, 13.40000]"),
            (
                {
                    "venue": {
                        "title": "Café",
                        "address": "Street 1",
                        "location": {"latitude": 1, "longitude": 2},
                    },
                    "location": {"latitude": 1, "longitude": 2},
                },
                "[venue Café, Street 1, 1.00000, 2.00000]",
            ),
            (
                {"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}},
                '[poll "Tea?": yes; no]',
            ),
            ({"contact": {"first_name": "Bo", "phone_number": "+49"}}, "[contact Bo +49]"),
            ({"dice": {"emoji": "🎲", "value": 4}}, "[dice 🎲 4]"),
            ({"story": {"id": 1}}, "[story]"),
        ],
    )
    def test_it_puts_words_for_what_is_no_text(self, fields: Any, shown: str) -> None:
        assert message(GROUP, text=None, **fields).text == shown

    def test_it_reads_a_sticker_without_an_emoji(self) -> None:
        found = message(GROUP, text=None, sticker={"file_id": "s1", "width": 512, "height": 512})

        assert [each.kind for each in found.attachments] == ["sticker"]

    @pytest.mark.parametrize("fields", contents.READABLE.values(), ids=contents.READABLE.keys())
    def test_it_reads_something_in_every_kind(self, fields: Any) -> None:
        found = message(GROUP, **{"text": None, **fields})

        assert found.text or found.attachments

    @pytest.mark.parametrize("fields", contents.SERVICE.values(), ids=contents.SERVICE.keys())
    def test_it_skips_what_a_chat_tells_about_itself(self, fields: Any) -> None:
        assert "service message" in skipped(GROUP, text=None, **fields)

    def test_it_skips_a_message_that_nobody_can_read(self) -> None:
        assert skipped(GROUP, text=None, hologram={"cube": 1}) == (
            "a message without anything to read (hologram, text)"
        )
        assert "(text)" in skipped(GROUP, text=" \n")

    def test_it_takes_the_pieces_of_an_album_for_pieces(self) -> None:
        assert message(GROUP, media_group_id="7").part == Part.PIECE
        assert message(GROUP).part == Part.WHOLE

    def test_it_takes_a_text_for_a_piece_that_was_cut_at_a_blank_line(self) -> None:
        """Telegram Desktop cuts there rather than at the limit, though no earlier than half way."""
        assert message(GROUP, text="字" * 2040).part == Part.PIECE
        assert message(GROUP, text="🌱" * 1020).part == Part.PIECE
        assert message(GROUP, text="字" * 1990).part == Part.WHOLE

    def test_it_takes_no_text_for_a_piece_because_of_its_links(self) -> None:
        link = entity("text_link", 0, 2, url="https://e.org/" + "x" * 3000)

        assert message(GROUP, text="hi", entities=[link]).part == Part.WHOLE


class TestQuotesAndForwards:
    def test_it_quotes_the_part_that_was_marked(self) -> None:
        other = {"message_id": 80, "from": MO, "chat": GROUP, "text": "one two three"}

        found = message(GROUP, reply_to_message=other, quote={"text": "two", "position": 4})

        assert found.quote == "two"

    def test_it_quotes_a_picture_by_what_it_is(self) -> None:
        other = {
            "message_id": 80,
            "chat": GROUP,
            "photo": [{"file_id": "p", "width": 3, "height": 2}],
        }

        assert message(GROUP, reply_to_message=other).quote == "[image] 3x2"

    @pytest.mark.parametrize(
        ("around", "quote"),
        [("reply to elsewhere", "[image] 1280x960"), ("reply to a story", "[story]")],
    )
    def test_it_quotes_what_is_in_another_chat(self, around: str, quote: str) -> None:
        found = message(GROUP, **contents.AROUND[around])

        assert (found.quote, found.reply_to, found.addressed) == (quote, "", False)

    def test_it_quotes_no_more_than_a_reader_needs(self) -> None:
        other = {"message_id": 80, "from": MO, "chat": GROUP, "text": "long " * 800}

        assert len(message(GROUP, reply_to_message=other).quote) == 1000

    @pytest.mark.parametrize(
        ("origin", "name"),
        [
            ({"type": "user", "sender_user": MO}, "Mo Deng"),
            ({"type": "hidden_user", "sender_user_name": "Somebody Shy"}, "Somebody Shy"),
            ({"type": "chat", "sender_chat": GROUP}, "Plain"),
            ({"type": "channel", "chat": NEWS, "message_id": 3}, "News"),
            ({"type": "new kind"}, "somebody"),
        ],
    )
    def test_it_says_whose_words_are_forwarded(self, origin: Any, name: str) -> None:
        assert message(PRIVATE, forward_origin=origin).forwarded_from == name


class TestEdits:
    def test_it_reads_an_edit(self) -> None:
        found = read(SAMPLES[4])

        assert isinstance(found, InboundMessage)
        assert (found.edits, found.message_id, found.text) == ("11", "", "你好 nahida")
        assert found.event_key == "edit:5550001:11:1790000040"

    def test_it_reads_the_edit_of_a_post(self) -> None:
        found = event(NEWS, "edited_channel_post", edit_date=1790000100)

        assert isinstance(found, InboundMessage)
        assert found.edits == "88"

    def test_it_takes_no_message_for_an_edit_that_was_edited_before_it_came(self) -> None:
        found = message(GROUP, edit_date=1790000100)

        assert (found.edits, found.message_id) == ("", "88")
        assert found.event_key == "msg:-1001234500002:88"
        assert found.sent_at == datetime.fromtimestamp(1790000000, UTC)

    def test_it_tells_edits_without_a_time_apart(self) -> None:
        found = event(GROUP, "edited_message")

        assert isinstance(found, InboundMessage)
        assert (found.edits, found.event_key) == ("88", "upd:1")

    def test_it_needs_to_know_what_was_edited(self) -> None:
        assert "edit" in skipped(GROUP, "edited_message", message_id=None, edit_date=1790000100)

    def test_it_does_not_follow_somebody_who_moves(self) -> None:
        """A live location is edited every few seconds."""
        place = {**contents.PLACE, "live_period": 3600}

        assert message(GROUP, text=None, location=place).text.startswith("[location")
        assert "moves" in skipped(GROUP, "edited_message", text=None, location=place, edit_date=1)


class TestMoves:
    OLD = ChatAddress("telegram", "group", "-77001")
    NEW = ChatAddress("telegram", "group", "-1001234500004")

    def test_it_sees_a_move_from_either_side(self) -> None:
        assert read(SAMPLES[8]) == ChatMoved(self.OLD, self.NEW)
        assert read(SAMPLES[9]) == ChatMoved(self.OLD, self.NEW)

    def test_it_moves_no_group_to_a_person(self) -> None:
        assert "without anything" in skipped(GROUP, text=None, migrate_to_chat_id=5550002)
        assert "without anything" in skipped(PRIVATE, text=None, migrate_to_chat_id=-77001)


class TestReach:
    def change(self, chat: dict[str, Any], status: str, **fields: Any) -> WireEvent:
        member = {"user": {"id": ME.id}, "status": status, **fields}
        return read({"update_id": 1, "my_chat_member": {"chat": chat, "new_chat_member": member}})

    def test_it_hears_of_a_block(self) -> None:
        found = read(SAMPLES[7])

        assert found == ReachChanged(
            ChatAddress("telegram", "private", "5550001"), "the person blocked the bot"
        )

    @pytest.mark.parametrize("status", ["kicked", "left"])
    def test_it_hears_that_it_was_removed(self, status: str) -> None:
        found = self.change(GROUP, status)

        assert isinstance(found, ReachChanged)
        assert (found.reason, found.is_muted) == ("the bot was removed from the chat", False)

    @pytest.mark.parametrize("status", ["member", "administrator", "creator"])
    def test_it_hears_that_it_may_write(self, status: str) -> None:
        assert self.change(GROUP, status) == ReachChanged(
            ChatAddress("telegram", "group", "-1001234500002")
        )

    def test_it_hears_for_how_long_it_may_not_write(self) -> None:
        found = self.change(GROUP, "restricted", until_date=1790003600)

        assert isinstance(found, ReachChanged)
        assert found.is_muted
        assert found.until == datetime.fromtimestamp(1790003600, UTC)
        assert self.change(GROUP, "restricted", until_date=0).until is None  # type: ignore[union-attr]

    def test_it_was_removed_if_it_is_restricted_and_no_member(self) -> None:
        found = self.change(GROUP, "restricted", is_member=False, can_send_messages=True)

        assert isinstance(found, ReachChanged)
        assert (found.reason, found.is_muted) == ("the bot was removed from the chat", False)

    @pytest.mark.parametrize("status", ["", "promoted"])
    def test_it_reads_nothing_into_a_status_that_it_does_not_know(self, status: str) -> None:
        found = self.change(GROUP, status)

        assert isinstance(found, Skipped)
        assert repr(status) in found.reason

    def test_it_ignores_its_membership_in_direct_messages_of_a_channel(self) -> None:
        found = self.change({**GROUP, "is_direct_messages": True}, "member")

        assert isinstance(found, Skipped)
        assert "direct messages" in found.reason

    def test_it_may_write_though_restricted_otherwise(self) -> None:
        found = self.change(GROUP, "restricted", can_send_messages=True)

        assert isinstance(found, ReachChanged)
        assert found.reason == ""

    def test_it_may_post_in_a_channel_only_with_that_right(self) -> None:
        for rights, is_muted in (({"can_post_messages": True}, False), ({}, True)):
            found = self.change(NEWS, "administrator", **rights)
            assert isinstance(found, ReachChanged)
            assert found.is_muted == is_muted


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"chat": {**GROUP, "is_direct_messages": True}}, "direct messages"),
        ({"business_connection_id": "b"}, "business_connection_id"),
        ({"guest_query_id": "g"}, "guest_query_id"),
        ({"ephemeral_message_id": 5}, "ephemeral_message_id"),
    ],
)
def test_it_ignores_conversations_that_only_share_a_number(fields: Any, word: str) -> None:
    found = event(**fields)

    assert isinstance(found, Skipped)
    assert word in found.reason


def test_it_ignores_other_updates_by_name() -> None:
    assert read(SAMPLES[6]) == Skipped("an update of the kind callback_query")
    assert read({"update_id": 5, "hologram": {}}) == Skipped("an update of the kind hologram")
    assert read({}) == Skipped("an update of the kind nothing")


def unknown(value: Any) -> Iterator[str]:
    """Yield the fields of a library's object that the library does not know."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for field in type(value).model_fields:
            yield from unknown(getattr(value, field))
    elif isinstance(value, list):
        for each in value:
            yield from unknown(each)


@pytest.mark.parametrize("update", SAMPLES + contents.ALL)
def test_its_samples_are_true_updates(update: dict[str, Any]) -> None:
    assert set(unknown(AiogramUpdate.model_validate(update))) <= {"all_members_are_administrators"}


# The library is older than rich messages.
@pytest.mark.parametrize(
    "update", [each for each in SAMPLES + contents.ALL if "rich_message" not in str(each)]
)
def test_its_samples_are_true_updates_of_another_library(update: dict[str, Any]) -> None:
    theirs = PtbUpdate.de_json(update, None)

    assert theirs is not None
    assert not theirs.api_kwargs
    assert theirs.effective_message is None or not theirs.effective_message.api_kwargs
