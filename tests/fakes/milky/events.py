"""What a protocol end reports. Each function returns one whole event, of account `SELF` at `T0`."""

from typing import Any

from tests.fakes.milky.entities import Entity, friend, group, member
from tests.fakes.milky.segments import T0, Content, segments_of

Event = dict[str, Any]

SELF = 1234567890


def event(event_type: str, **data: Any) -> Event:
    return {"time": T0, "self_id": SELF, "event_type": event_type, "data": data}


def friend_message(
    peer_id: int,
    *content: Content,
    message_seq: int = 1,
    sender_id: int | None = None,
    entity: Entity | None = None,
) -> Event:
    """A friend's message, or our own to that friend."""
    return event(
        "message_receive",
        message_scene="friend",
        peer_id=peer_id,
        message_seq=message_seq,
        sender_id=peer_id if sender_id is None else sender_id,
        time=T0,
        segments=segments_of(content),
        friend=entity or friend(peer_id),
    )


def group_message(
    group_id: int,
    sender_id: int,
    *content: Content,
    message_seq: int = 1,
    entity: Entity | None = None,
    sender: Entity | None = None,
) -> Event:
    return event(
        "message_receive",
        message_scene="group",
        peer_id=group_id,
        message_seq=message_seq,
        sender_id=sender_id,
        time=T0,
        segments=segments_of(content),
        group=entity or group(group_id),
        group_member=sender or member(group_id, sender_id),
    )


def temp_message(
    peer_id: int,
    *content: Content,
    message_seq: int = 1,
    sender_id: int | None = None,
    through: Entity | None = None,
) -> Event:
    """A stranger's message, written through a shared group that the end may know or not."""
    return event(
        "message_receive",
        message_scene="temp",
        peer_id=peer_id,
        message_seq=message_seq,
        sender_id=peer_id if sender_id is None else sender_id,
        time=T0,
        segments=segments_of(content),
        group=through,
    )


def message_recall(
    scene: str,
    peer_id: int,
    message_seq: int,
    *,
    sender_id: int,
    operator_id: int | None = None,
) -> Event:
    return event(
        "message_recall",
        message_scene=scene,
        peer_id=peer_id,
        message_seq=message_seq,
        sender_id=sender_id,
        operator_id=sender_id if operator_id is None else operator_id,
        display_suffix="",
    )


def bot_offline(reason: str = "您的账号在另一处登录") -> Event:
    return event("bot_offline", reason=reason)


def peer_pin_change(scene: str, peer_id: int, *, is_pinned: bool = True) -> Event:
    return event("peer_pin_change", message_scene=scene, peer_id=peer_id, is_pinned=is_pinned)


def friend_request(initiator_id: int, *, comment: str = "我是阿露") -> Event:
    return event(
        "friend_request",
        initiator_id=initiator_id,
        initiator_uid="u_example",
        comment=comment,
        via="QQ号查找",
    )


def group_join_request(group_id: int, initiator_id: int, *, comment: str = "") -> Event:
    return event(
        "group_join_request",
        group_id=group_id,
        notification_seq=1,
        is_filtered=False,
        initiator_id=initiator_id,
        comment=comment,
    )


def group_invited_join_request(group_id: int, initiator_id: int, *, target_user_id: int) -> Event:
    return event(
        "group_invited_join_request",
        group_id=group_id,
        notification_seq=1,
        initiator_id=initiator_id,
        target_user_id=target_user_id,
    )


def group_invitation(
    group_id: int, initiator_id: int, *, source_group_id: int | None = None
) -> Event:
    return event(
        "group_invitation",
        group_id=group_id,
        invitation_seq=1,
        initiator_id=initiator_id,
        source_group_id=source_group_id,
    )


def friend_nudge(
    user_id: int, *, is_self_send: bool = False, is_self_receive: bool = True
) -> Event:
    return event(
        "friend_nudge",
        user_id=user_id,
        is_self_send=is_self_send,
        is_self_receive=is_self_receive,
        display_action="戳了戳",
        display_suffix="",
        display_action_img_url="",
    )


def group_nudge(group_id: int, sender_id: int, *, receiver_id: int = SELF) -> Event:
    return event(
        "group_nudge",
        group_id=group_id,
        sender_id=sender_id,
        receiver_id=receiver_id,
        display_action="戳了戳",
        display_suffix="",
        display_action_img_url="",
    )


def friend_file_upload(
    user_id: int,
    *,
    file_id: str = "/p-1",
    file_name: str = "notes.txt",
    file_size: int = 512,
    file_hash: str = "aabbccddeeff00112233445566778899aabbccdd",
    is_self: bool = False,
) -> Event:
    return event(
        "friend_file_upload",
        user_id=user_id,
        file_id=file_id,
        file_name=file_name,
        file_size=file_size,
        file_hash=file_hash,
        is_self=is_self,
    )


def group_file_upload(
    group_id: int,
    user_id: int,
    *,
    file_id: str = "/f-1",
    file_name: str = "notes.txt",
    file_size: int = 512,
) -> Event:
    return event(
        "group_file_upload",
        group_id=group_id,
        user_id=user_id,
        file_id=file_id,
        file_name=file_name,
        file_size=file_size,
    )


def group_member_increase(
    group_id: int,
    user_id: int,
    *,
    operator_id: int | None = None,
    invitor_id: int | None = None,
) -> Event:
    return event(
        "group_member_increase",
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        invitor_id=invitor_id,
    )


def group_member_decrease(group_id: int, user_id: int, *, operator_id: int | None = None) -> Event:
    """Someone left, or was made to go by the operator."""
    return event(
        "group_member_decrease", group_id=group_id, user_id=user_id, operator_id=operator_id
    )


def group_disband(group_id: int, operator_id: int) -> Event:
    return event("group_disband", group_id=group_id, operator_id=operator_id)


def group_name_change(group_id: int, new_group_name: str, *, operator_id: int) -> Event:
    return event(
        "group_name_change",
        group_id=group_id,
        new_group_name=new_group_name,
        operator_id=operator_id,
    )


def group_admin_change(
    group_id: int, user_id: int, *, operator_id: int, is_set: bool = True
) -> Event:
    return event(
        "group_admin_change",
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        is_set=is_set,
    )


def group_mute(group_id: int, user_id: int, *, operator_id: int, duration: int = 600) -> Event:
    """Someone may not speak for `duration` seconds; 0: may again."""
    return event(
        "group_mute",
        group_id=group_id,
        user_id=user_id,
        operator_id=operator_id,
        duration=duration,
    )


def group_whole_mute(group_id: int, *, operator_id: int, is_mute: bool = True) -> Event:
    return event("group_whole_mute", group_id=group_id, operator_id=operator_id, is_mute=is_mute)


def group_message_reaction(
    group_id: int,
    user_id: int,
    message_seq: int,
    *,
    face_id: str = "14",
    reaction_type: str = "face",
    is_add: bool = True,
) -> Event:
    return event(
        "group_message_reaction",
        group_id=group_id,
        user_id=user_id,
        message_seq=message_seq,
        face_id=face_id,
        reaction_type=reaction_type,
        is_add=is_add,
    )


def group_essence_message_change(
    group_id: int, message_seq: int, *, operator_id: int, is_set: bool = True
) -> Event:
    return event(
        "group_essence_message_change",
        group_id=group_id,
        message_seq=message_seq,
        operator_id=operator_id,
        is_set=is_set,
    )


def unknown_event(**data: Any) -> Event:
    """A kind that no version of the protocol has yet."""
    return event("moon_phase_change", **data)
