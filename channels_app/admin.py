from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator


class ReadOnlyAdmin(ModelAdmin):
    """Rows that the system writes and people only look at. Paging counts nothing: such tables are long."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    ordering: Sequence[str] = ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
