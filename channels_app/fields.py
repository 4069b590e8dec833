"""Text columns that hold an address or key where no ForeignKey can stand.

Most rows point to a chat or session by ForeignKey and need nothing when a key changes. The few text columns are marked here,
so that re-keying finds them by walking the models instead of by a list that somebody forgets to extend (DESIGN 4).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from channels_app.addresses import MAX_KEY_BYTES


class AddressField(models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """Text of an address or chat key. `follows` selects the rows that follow a rename; None means evidence: never.

    `resets` gives the columns beside it that mean something at the old address only their new value.

    The old bot also wrote session keys into some of these columns: `of_session` selects the rows whose text is such a key, and
    that go to the chat of that session when it is known; `becomes` are the values of the columns beside it there.
    """

    def __init__(
        self,
        *args: Any,
        follows: models.Q | None = None,
        resets: Mapping[str, Any] | None = None,
        of_session: models.Q | None = None,
        becomes: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("max_length", MAX_KEY_BYTES)
        super().__init__(*args, **kwargs)
        self.follows = follows
        self.resets = resets or {}
        self.of_session = of_session
        self.becomes = becomes or {}

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


def address_columns() -> Iterator[tuple[type[models.Model], AddressField]]:
    """Yield every column of every model that holds an address text."""
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.local_fields:
            if isinstance(field, AddressField):
                yield model, field


class KeyType(models.Func):
    """Second segment of a key text with the ":" behind it, where a typed key names its chat type; else ""."""

    output_field = models.TextField()
    template = "COALESCE(SUBSTRING(%(expressions)s FROM '^[^:]*:([^:]*:)'), '')"
    arity = 1

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        key, params = compiler.compile(self.source_expressions[0])
        rest = f"SUBSTR({key}, INSTR({key}, ':') + 1)"
        return f"SUBSTR({rest}, 1, INSTR({rest}, ':'))", tuple(params) * 4
