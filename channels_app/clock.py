"""The database's clock: leases and wake-ups are compared by it, never by a machine's own."""

from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Func
from django.db.models.sql.compiler import SQLCompiler


class DbNow(Func):
    """The instant a statement runs. PostgreSQL's `now()` stands still in a transaction; this does not."""

    template = "CLOCK_TIMESTAMP()"
    output_field = DateTimeField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        # The text form that Django stores, so that comparing texts compares instants.
        template = "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW')"
        sql, params = self.as_sql(compiler, connection, template=template, **extra)
        return sql, tuple(params)


def is_postgresql() -> bool:
    return connection.vendor == "postgresql"
