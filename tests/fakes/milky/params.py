"""What the APIs take, as strictly as the protocol words it, and no key beyond that."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Uin = Annotated[int, Field(ge=10001, le=4294967295)]
Natural = Annotated[int, Field(ge=0)]
Scene = Literal["friend", "group", "temp"]


class Params(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class TextData(Params):
    text: str


class MentionData(Params):
    user_id: Uin


class FaceData(Params):
    face_id: str
    is_large: bool | None = False


class ReplyData(Params):
    message_seq: Natural


class ImageData(Params):
    uri: str
    sub_type: Literal["normal", "sticker"] | None = "normal"
    summary: str | None = None


class RecordData(Params):
    uri: str


class VideoData(Params):
    uri: str
    thumb_uri: str | None = None


class ForwardedMessage(Params):
    user_id: Uin
    sender_name: str
    segments: list["OutgoingSegment"]


class ForwardData(Params):
    messages: list[ForwardedMessage]
    title: str | None = None
    preview: list[str] | None = None
    summary: str | None = None
    prompt: str | None = None


class LightAppData(Params):
    json_payload: str


class Text(Params):
    type: Literal["text"]
    data: TextData


class Mention(Params):
    type: Literal["mention"]
    data: MentionData


class MentionAll(Params):
    type: Literal["mention_all"]
    data: Params


class Face(Params):
    type: Literal["face"]
    data: FaceData


class Reply(Params):
    type: Literal["reply"]
    data: ReplyData


class Image(Params):
    type: Literal["image"]
    data: ImageData


class Record(Params):
    type: Literal["record"]
    data: RecordData


class Video(Params):
    type: Literal["video"]
    data: VideoData


class Forward(Params):
    type: Literal["forward"]
    data: ForwardData


class LightApp(Params):
    type: Literal["light_app"]
    data: LightAppData


OutgoingSegment = Annotated[
    Text | Mention | MentionAll | Face | Reply | Image | Record | Video | Forward | LightApp,
    Field(discriminator="type"),
]


class SendPrivateMessage(Params):
    user_id: Uin
    message: list[OutgoingSegment]


class SendGroupMessage(Params):
    group_id: Uin
    message: list[OutgoingSegment]


class RecallPrivateMessage(Params):
    user_id: Uin
    message_seq: Natural


class RecallGroupMessage(Params):
    group_id: Uin
    message_seq: Natural


class OneMessage(Params):
    message_scene: Scene
    peer_id: Uin
    message_seq: Natural


class GetHistoryMessages(Params):
    message_scene: Scene
    peer_id: Uin
    start_message_seq: Natural | None = None
    limit: Annotated[int, Field(ge=1, le=30)] | None = 20


class GetResourceTempUrl(Params):
    resource_id: str


class GetForwardedMessages(Params):
    forward_id: str


class GetFriendInfo(Params):
    user_id: Uin
    no_cache: bool | None = False


class GetGroupInfo(Params):
    group_id: Uin
    no_cache: bool | None = False


class GetGroupMemberInfo(Params):
    group_id: Uin
    user_id: Uin
    no_cache: bool | None = False


class SendGroupMessageReaction(Params):
    group_id: Uin
    message_seq: Natural
    reaction: str
    reaction_type: Literal["face", "emoji"] | None = "face"
    is_add: bool | None = True


class UploadPrivateFile(Params):
    user_id: Uin
    file_uri: str
    file_name: str


class UploadGroupFile(Params):
    group_id: Uin
    parent_folder_id: str | None = "/"
    file_uri: str
    file_name: str


class GetPrivateFileDownloadUrl(Params):
    user_id: Uin
    file_id: str
    file_hash: str


class GroupFile(Params):
    group_id: Uin
    file_id: str


TAKES: dict[str, type[Params]] = {
    "get_login_info": Params,
    "get_impl_info": Params,
    "get_friend_info": GetFriendInfo,
    "get_group_info": GetGroupInfo,
    "get_group_member_info": GetGroupMemberInfo,
    "send_private_message": SendPrivateMessage,
    "send_group_message": SendGroupMessage,
    "recall_private_message": RecallPrivateMessage,
    "recall_group_message": RecallGroupMessage,
    "get_message": OneMessage,
    "get_history_messages": GetHistoryMessages,
    "get_resource_temp_url": GetResourceTempUrl,
    "get_forwarded_messages": GetForwardedMessages,
    "mark_message_as_read": OneMessage,
    "send_group_message_reaction": SendGroupMessageReaction,
    "upload_private_file": UploadPrivateFile,
    "upload_group_file": UploadGroupFile,
    "get_private_file_download_url": GetPrivateFileDownloadUrl,
    "get_group_file_download_url": GroupFile,
    "persist_group_file": GroupFile,
}
