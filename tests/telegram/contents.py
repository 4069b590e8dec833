"""What a message may hold, one of each kind, as the Bot API shows it."""

from typing import Any

MO = {"id": 5550002, "is_bot": False, "first_name": "Mo", "last_name": "Deng"}
GROUP = {"id": -1001234500002, "type": "supergroup", "title": "Plain"}
NEWS = {"id": -1001234500003, "type": "channel", "title": "News"}
DATE = 1790000000


def file(name: str, **more: Any) -> dict[str, Any]:
    return {"file_id": f"id-{name}", "file_unique_id": f"unique-{name}", **more}


PHOTO = [
    file("small", width=90, height=67, file_size=1200),
    file("large", width=1280, height=960, file_size=150000),
]
PLACE = {"latitude": 52.5, "longitude": 13.4}
CLIP = file("clip", width=320, height=240, duration=7, mime_type="video/mp4", file_size=90000)
REPORT = file("report", file_name="report.pdf", mime_type="application/pdf", file_size=9000)
VOICE = file("voice", duration=12, mime_type="audio/ogg", file_size=4000)
STICKER = {
    "type": "regular",
    "width": 512,
    "height": 512,
    "is_animated": False,
    "is_video": False,
}


def option(text: str) -> dict[str, Any]:
    return {"persistent_id": text, "text": text, "voter_count": 0}


def entity(kind: str, offset: int, length: int, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **fields}


def paragraph(*words: Any) -> dict[str, Any]:
    return {"type": "paragraph", "text": list(words)}


RICH = {
    "blocks": [
        {"type": "heading", "text": "Plan", "size": 2},
        paragraph(
            "for ",
            {"type": "bold", "text": "us"},
            ", see ",
            {"type": "url", "text": "here", "url": "https://e.org/x"},
            {"type": "custom_emoji", "custom_emoji_id": "5", "alternative_text": "🌱"},
            ", ask ",
            {"type": "mention", "text": "@nahida_bot", "username": "nahida_bot"},
        ),
        {"type": "pre", "text": "x = 1", "language": "python"},
        {
            "type": "list",
            "items": [
                {"label": "1.", "blocks": [paragraph("tea")]},
                {
                    "label": "2.",
                    "blocks": [paragraph("milk")],
                    "has_checkbox": True,
                    "is_checked": True,
                },
            ],
        },
        {
            "type": "table",
            "cells": [
                [
                    {"align": "left", "valign": "top", "text": "a"},
                    {"align": "left", "valign": "top", "text": {"type": "code", "text": "b"}},
                ]
            ],
        },
        {"type": "blockquote", "blocks": [paragraph("said once")], "credit": "Somebody"},
        {"type": "details", "summary": "More", "blocks": [{"type": "divider"}, paragraph("x")]},
        {"type": "mathematical_expression", "expression": "a^2"},
        {"type": "photo", "photo": PHOTO, "caption": {"text": "a view"}},
        {"type": "voice_note", "voice_note": VOICE},
        {"type": "map", "location": PLACE, "zoom": 15, "width": 300, "height": 200},
    ]
}

READABLE: dict[str, dict[str, Any]] = {
    "text": {"text": "hi"},
    "marked text": {
        "text": "🌱 see here and x = 1 @nahida_bot Mo",
        "entities": [
            entity("text_link", 7, 4, url="https://e.org/x"),
            entity("code", 16, 5),
            entity("mention", 22, 11),
            entity("text_mention", 34, 2, user=MO),
        ],
    },
    "code": {"text": "x = 1", "entities": [entity("pre", 0, 5, language="python")]},
    "rich message": {"rich_message": RICH},
    "photo": {"photo": PHOTO, "caption": "look", "media_group_id": "7"},
    "live photo": {"live_photo": {**CLIP, "photo": PHOTO}, "photo": PHOTO},
    "document": {
        "document": REPORT,
        "caption": "/ask",
        "caption_entities": [entity("bot_command", 0, 4)],
    },
    "animation": {"animation": CLIP, "document": REPORT},
    "audio": {"audio": file("song", duration=200, title="Song", performer="Band")},
    "voice": {"voice": VOICE},
    "video": {"video": CLIP},
    "round video": {"video_note": file("round", length=240, duration=5)},
    "sticker": {"sticker": file("sticker", **STICKER, emoji="😀")},
    "sticker without an emoji": {"sticker": file("sticker", **STICKER)},
    "location": {"location": PLACE},
    "venue": {
        "location": PLACE,
        "venue": {"location": PLACE, "title": "Café", "address": "Street 1"},
    },
    "contact": {"contact": {"phone_number": "+49", "first_name": "Bo", "user_id": 5550009}},
    "poll": {
        "poll": {
            "id": "1",
            "question": "Tea?",
            "options": [option("yes"), option("no")],
            "total_voter_count": 0,
            "is_closed": False,
            "is_anonymous": True,
            "type": "regular",
            "allows_multiple_answers": False,
            "allows_revoting": True,
            "members_only": False,
        }
    },
    "dice": {"dice": {"emoji": "🎲", "value": 4}},
    "game": {"game": {"title": "Chess", "description": "A game", "photo": PHOTO}},
    "checklist": {
        "checklist": {
            "title": "Shop",
            "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "tea"}],
        }
    },
    "invoice": {
        "invoice": {
            "title": "Tea",
            "description": "A cup",
            "start_parameter": "",
            "currency": "EUR",
            "total_amount": 300,
        }
    },
    "story": {"story": {"chat": NEWS, "id": 3}},
    "paid media": {"paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}]}},
    "giveaway": {"giveaway": {"chats": [NEWS], "winners_selection_date": DATE, "winner_count": 2}},
}

SERVICE: dict[str, dict[str, Any]] = {
    "joined": {"new_chat_members": [MO]},
    "left": {"left_chat_member": MO},
    "title": {"new_chat_title": "New"},
    "chat photo": {"new_chat_photo": PHOTO},
    "no chat photo": {"delete_chat_photo": True},
    "group made": {"group_chat_created": True},
    "timer": {"message_auto_delete_timer_changed": {"message_auto_delete_time": 60}},
    "pinned": {
        "pinned_message": {"message_id": 3, "date": DATE, "chat": GROUP, "from": MO, "text": "hi"}
    },
    "topic made": {"forum_topic_created": {"name": "Help", "icon_color": 7322096}},
    "topic edited": {"forum_topic_edited": {"name": "Help!"}},
    "topic closed": {"forum_topic_closed": {}},
    "topic reopened": {"forum_topic_reopened": {}},
    "General hidden": {"general_forum_topic_hidden": {}},
    "General shown": {"general_forum_topic_unhidden": {}},
    "video chat": {"video_chat_started": {}},
    "video chat over": {"video_chat_ended": {"duration": 60}},
    "boost": {"boost_added": {"boost_count": 1}},
    "background": {"chat_background_set": {"type": {"type": "chat_theme", "theme_name": "🌱"}}},
    "write access": {"write_access_allowed": {"from_request": True}},
    "prices": {"paid_message_price_changed": {"paid_message_star_count": 3}},
}

AROUND: dict[str, dict[str, Any]] = {
    "reply": {
        "reply_to_message": {
            "message_id": 80,
            "date": DATE,
            "chat": GROUP,
            "from": {"id": 42000001, "is_bot": True, "first_name": "Nahida"},
            "photo": PHOTO,
        },
        "quote": {"text": "two", "position": 4, "is_manual": True},
    },
    "reply to elsewhere": {
        "external_reply": {
            "origin": {"type": "channel", "date": DATE, "chat": NEWS, "message_id": 3},
            "chat": NEWS,
            "photo": PHOTO,
        }
    },
    "reply to a story": {"reply_to_story": {"chat": NEWS, "id": 3}},
    "from a person": {"forward_origin": {"type": "user", "date": DATE, "sender_user": MO}},
    "from somebody hidden": {
        "forward_origin": {"type": "hidden_user", "date": DATE, "sender_user_name": "Shy"}
    },
    "from a group": {"forward_origin": {"type": "chat", "date": DATE, "sender_chat": GROUP}},
    "from a channel": {
        "forward_origin": {"type": "channel", "date": DATE, "chat": NEWS, "message_id": 3}
    },
    "for a channel": {"sender_chat": NEWS, "is_automatic_forward": True},
    "in a topic": {"message_thread_id": 17, "is_topic_message": True},
}


def update(fields: dict[str, Any], *, kind: str = "message", **more: Any) -> dict[str, Any]:
    message = {"message_id": 88, "from": MO, "chat": GROUP, "date": DATE}
    return {"update_id": 700100100, kind: {**message, **fields, **more}}


ALL = [
    *(update(fields) for fields in (*READABLE.values(), *SERVICE.values())),
    *(update(fields, text="hi") for fields in AROUND.values()),
    update(READABLE["photo"], kind="edited_message", edit_date=DATE + 9),
]
