"""Friends, groups and members as a protocol end describes them."""

from typing import Any

Entity = dict[str, Any]


def friend(user_id: int, *, nickname: str = "小叶", remark: str = "") -> Entity:
    return {
        "user_id": user_id,
        "nickname": nickname,
        "sex": "unknown",
        "qid": "",
        "remark": remark,
        "category": {"category_id": 0, "category_name": "我的好友"},
    }


def group(group_id: int, *, group_name: str = "测试群", remark: str = "") -> Entity:
    return {
        "group_id": group_id,
        "group_name": group_name,
        "member_count": 12,
        "max_member_count": 200,
        "remark": remark,
        "created_time": 1_600_000_000,
        "description": "",
        "question": "",
        "announcement": "",
    }


def member(
    group_id: int,
    user_id: int,
    *,
    nickname: str = "Aru",
    card: str = "",
    role: str = "member",
    shut_up_end_time: int | None = None,
) -> Entity:
    return {
        "user_id": user_id,
        "nickname": nickname,
        "sex": "female",
        "group_id": group_id,
        "card": card,
        "title": "",
        "level": 23,
        "role": role,
        "join_time": 1_650_000_000,
        "last_sent_time": 1_790_000_000,
        "shut_up_end_time": shut_up_end_time,
    }
