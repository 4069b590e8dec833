"""What a person decides about a record, checked before it is written. Nothing is applied here."""

import getpass
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from channels_app.addresses import RESERVED_CHANNELS, AddressError, ChatAddress, SessionKey
from nahida.legacy.evidence import after_forced_rename
from nahida.legacy.gather import gather_one
from nahida.legacy.inspect import lines_of, propose_one
from nahida.legacy.proposals import (
    DISABLE_CRON,
    KEEP_LEGACY,
    MANUAL_REVIEW,
    RENAME,
    SKIP_TYPED,
    SPLIT,
    plain,
)
from nahida.legacy.records import note
from sessions_app.models import Approval, MigrationLog

FORCED = (Approval.RENAME, Approval.SPLIT)
DECIDABLE = (RENAME, SPLIT, KEEP_LEGACY, DISABLE_CRON)

Targets = list[dict[str, Any]]


class DecisionError(ValueError):
    """A decision that cannot be taken; `field` is the one of the plan's entry that is wrong."""

    def __init__(self, message: str, *, field: str = "approval") -> None:
        super().__init__(message)
        self.field = field


def operator(as_user: str | None) -> str:
    """Return who a command acts for."""
    return as_user or f"cli:{getpass.getuser()}"


@transaction.atomic
def decide(
    record: MigrationLog,
    approval: str,
    *,
    who: str,
    new_key: str = "",
    targets: Targets | None = None,
    **origin: str,
) -> MigrationLog:
    """Write a decision into its record, or raise DecisionError. `new_key` and `targets` are for forced ones alone.

    `origin` is kept with it in the history.
    """
    record = MigrationLog.objects.select_for_update().get(pk=record.pk)
    if record.result:
        raise DecisionError(f"{record.old_key} is settled already: {record.result}")
    if record.approval in FORCED:
        _restore(record)
    elif record.approval == approval:
        return record
    _CHECKS[_known(approval)](record)
    details: dict[str, Any] = {}
    if approval == Approval.RENAME:
        details = _force_rename(record, new_key)
    elif approval == Approval.SPLIT:
        details = _force_split(record, record.targets if targets is None else targets)
    record.approval = approval
    note(record, approval, who=who, **details, **origin)
    record.save()
    return record


def _known(approval: str) -> Approval:
    if approval not in Approval.values:
        raise DecisionError(f'"{approval}" is no decision: use {", ".join(Approval.values)}')
    return Approval(approval)


def _restore(record: MigrationLog) -> None:
    """What a person had forced gives way to what is proposed."""
    proposal = propose_one(record)
    if proposal is None:
        raise DecisionError(f"{record.old_key} has changed: inspect again")
    for column, value in proposal.columns.items():
        setattr(record, column, value)


def _may_be_approved(record: MigrationLog) -> None:
    if record.recommendation == MANUAL_REVIEW:
        raise DecisionError(
            f"{record.old_key} needs a person's own answer: force_keep_legacy, or force_rename with its typed key"
        )
    _may_be_decided(record)
    if record.recommendation == SPLIT and not any(one["turn_ids"] for one in record.targets):
        raise DecisionError(f"{record.old_key} has no targets to split to", field="split_targets")


def _may_be_decided(record: MigrationLog) -> None:
    if record.recommendation == SKIP_TYPED:
        raise DecisionError(f"{record.old_key} is typed: there is nothing to decide")


def _may_be_kept(record: MigrationLog) -> None:
    _has_session(record)
    _may_be_decided(record)


def _has_session(record: MigrationLog) -> None:
    if record.subject_pk is None:
        raise DecisionError(f"no session has the key {record.old_key}: only its jobs are decided")


def _anything(record: MigrationLog) -> None:
    """To leave it open is always possible."""


_CHECKS = {
    Approval.PENDING: _anything,
    Approval.APPROVED: _may_be_approved,
    Approval.REJECTED: _may_be_decided,
    Approval.KEEP_LEGACY: _may_be_kept,
    Approval.RENAME: _may_be_decided,
    Approval.SPLIT: _may_be_kept,
}


def _force_rename(record: MigrationLog, text: str) -> dict[str, Any]:
    key = typed_key(text)
    record.new_key = str(key)
    record.targets = []
    affected = after_forced_rename(gather_one(record), record.old_key, key)
    record.affected = {**record.affected, **plain(affected)}
    return {"new_key": record.new_key}


def typed_key(text: str, *, field: str = "new_session_id") -> SessionKey:
    """Read the typed key a person wrote, or raise DecisionError with the right form."""
    try:
        key = SessionKey.parse(text)
        if not key.typed:
            ChatAddress.target(text)  # raises, with the right form
    except AddressError as error:
        raise DecisionError(str(error), field=field) from error
    if str(key) != text:
        raise DecisionError(f'"{text}" is written differently: write {key}', field=field)
    if key.address.channel in RESERVED_CHANNELS:
        raise DecisionError(
            f"{key} is in a channel of our own, which takes no old chat", field=field
        )
    return key


def _force_split(record: MigrationLog, targets: Targets) -> dict[str, Any]:
    wanted: dict[int, str] = {}
    record.targets = [_target(target, wanted) for target in targets]
    if not wanted:
        raise DecisionError("no target has a turn", field="split_targets")
    _check_turns(record, wanted)
    record.new_key = ""
    return {"targets": {one["new_session_id"]: len(one["turn_ids"]) for one in record.targets}}


def _target(target: Any, wanted: dict[int, str]) -> dict[str, Any]:
    """Return a target in the form that is kept, and enter the chat of each of its turns into `wanted`."""
    if not isinstance(target, Mapping) or set(target) != {
        "chat_address",
        "new_session_id",
        "turn_ids",
    }:
        raise DecisionError(
            "a target is chat_address, new_session_id and turn_ids", field="split_targets"
        )
    key = typed_key(str(target["new_session_id"]), field="split_targets")
    if target["chat_address"] != key.chat_key:
        raise DecisionError(
            f"{key} is not in the chat {target['chat_address']}", field="split_targets"
        )
    ids = target["turn_ids"]
    if not isinstance(ids, list) or not all(type(id) is int for id in ids):
        raise DecisionError(f"the turn_ids of {key} are no list of ids", field="split_targets")
    for id in ids:
        if id in wanted:
            raise DecisionError(f"turn {id} is listed twice", field="split_targets")
        wanted[id] = key.chat_key
    return {"chat_address": key.chat_key, "new_session_id": str(key), "turn_ids": sorted(ids)}


def _check_turns(record: MigrationLog, wanted: Mapping[int, str]) -> None:
    """Every turn must be one of the session, and none may go where its own envelope contradicts."""
    left = dict(wanted)
    for line in lines_of(record.subject_pk):
        chat = left.pop(line.id, "")
        if chat and line.chat not in ("", chat):
            raise DecisionError(
                f"turn {line.id} came from {line.chat} and cannot go to {chat}",
                field="split_targets",
            )
    if left:
        raise DecisionError(
            f"turns that are not of {record.old_key}: {_some(left)}", field="split_targets"
        )


def _some(ids: Iterable[int]) -> str:
    first = sorted(ids)
    shown = ", ".join(map(str, first[:5]))
    return shown if len(first) <= 5 else f"{shown} and {len(first) - 5} more"
