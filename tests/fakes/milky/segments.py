"""What a message is made of when a protocol end reports it."""

from collections.abc import Iterable
from typing import Any

Segment = dict[str, Any]
Content = str | Segment

T0 = 1_790_000_000  # Unix seconds


def _segment(type_: str, **data: Any) -> Segment:
    return {"type": type_, "data": data}


def segments_of(content: Iterable[Content]) -> list[Segment]:
    """Let a plain string stand for a text segment."""
    return [text(part) if isinstance(part, str) else part for part in content]


def text(text: str) -> Segment:
    return _segment("text", text=text)


def mention(user_id: int, name: str = "") -> Segment:
    return _segment("mention", user_id=user_id, name=name)


def mention_all() -> Segment:
    return _segment("mention_all")


def face(face_id: str = "14", *, is_large: bool = False) -> Segment:
    return _segment("face", face_id=face_id, is_large=is_large)


def reply(
    message_seq: int,
    *quoted: Content,
    sender_id: int,
    sender_name: str | None = None,
    time: int = T0,
) -> Segment:
    """Quote a message; a sender's name is told only inside forwards."""
    return _segment(
        "reply",
        message_seq=message_seq,
        sender_id=sender_id,
        sender_name=sender_name,
        time=time,
        segments=segments_of(quoted),
    )


def image(
    resource_id: str = "res-image",
    *,
    temp_url: str = "http://127.0.0.1:9/a.png",
    summary: str = "[图片]",
    sub_type: str = "normal",
) -> Segment:
    return _segment(
        "image",
        resource_id=resource_id,
        temp_url=temp_url,
        width=640,
        height=480,
        summary=summary,
        sub_type=sub_type,
    )


def record(
    resource_id: str = "res-record",
    *,
    temp_url: str = "http://127.0.0.1:9/a.silk",
    duration: int = 4,
) -> Segment:
    return _segment("record", resource_id=resource_id, temp_url=temp_url, duration=duration)


def video(
    resource_id: str = "res-video",
    *,
    temp_url: str = "http://127.0.0.1:9/a.mp4",
    duration: int = 9,
) -> Segment:
    return _segment(
        "video",
        resource_id=resource_id,
        temp_url=temp_url,
        width=720,
        height=1280,
        duration=duration,
    )


def file(
    file_id: str = "/f-1",
    *,
    file_name: str = "报告.pdf",
    file_size: int = 20480,
    file_hash: str | None = None,
) -> Segment:
    """A file; only in private chats it has a hash."""
    return _segment(
        "file", file_id=file_id, file_name=file_name, file_size=file_size, file_hash=file_hash
    )


def forward(
    forward_id: str = "fwd-1",
    *,
    title: str = "群聊的聊天记录",
    preview: Iterable[str] = ("阿露: 在吗", "小叶: 在"),
    summary: str = "查看2条转发消息",
) -> Segment:
    return _segment(
        "forward", forward_id=forward_id, title=title, preview=list(preview), summary=summary
    )


def market_face(summary: str = "[赞]") -> Segment:
    return _segment(
        "market_face",
        emoji_package_id=1,
        emoji_id="e-01",
        key="k-01",
        summary=summary,
        url="http://127.0.0.1:9/e.png",
    )


def light_app(
    json_payload: str = '{"app":"com.example.card","prompt":"[分享]"}',
    *,
    app_name: str = "com.example.card",
) -> Segment:
    return _segment("light_app", app_name=app_name, json_payload=json_payload)


def xml(xml_payload: str = "<msg/>") -> Segment:
    return _segment("xml", service_id=1, xml_payload=xml_payload)


def markdown(content: str = "# 标题") -> Segment:
    return _segment("markdown", content=content)


def unknown(**data: Any) -> Segment:
    """A kind that no version of the protocol has yet."""
    return _segment("hologram", **data)


def forwarded(
    *content: Content, sender_name: str = "阿露", message_seq: int = 1, time: int = T0
) -> dict[str, Any]:
    """One message inside a forward."""
    return {
        "message_seq": message_seq,
        "sender_name": sender_name,
        "avatar_url": "http://127.0.0.1:9/avatar.png",
        "time": time,
        "segments": segments_of(content),
    }
