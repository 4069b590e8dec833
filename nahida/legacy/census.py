"""The rows of whole tables, counted once before a run and once after: nothing may have got lost on the way (DESIGN 8.5)."""

from collections import Counter
from collections.abc import Mapping

from django.db import models

from sessions_app.models import Change, MigrationUndo, Session
from sessions_app.relations import pointing_at

Census = Mapping[str, int]


def count_rows() -> Census:
    """Count every table whose rows belong to a session, however indirectly, and the sessions themselves."""
    return {model._meta.label: model._base_manager.count() for model in _belonging()}


def last_undo() -> int:
    return MigrationUndo.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def missing(before: Census, *, undo_after: int) -> list[str]:
    """Name the tables that now have fewer rows than there were, but for those that records removed; live ones may have more."""
    expected = Counter(before)
    expected.update(_made_and_removed(undo_after))
    now = count_rows()
    return [
        f"{table} has {now[table]} rows, not {number}"
        for table, number in sorted(expected.items())
        if table in now and now[table] < number
    ]


def _made_and_removed(undo_after: int) -> Counter[str]:
    whole = MigrationUndo.objects.filter(
        pk__gt=undo_after, change__in=[Change.INSERT, Change.DELETE]
    )
    balance: Counter[str] = Counter()
    for model, change in whole.values_list("model", "change").iterator():
        balance[model] += 1 if change == Change.INSERT else -1
    return balance


def _belonging() -> list[type[models.Model]]:
    found: list[type[models.Model]] = [Session]
    for model in found:
        for other, _ in pointing_at(model):
            if other not in found:
                found.append(other)
    return found
