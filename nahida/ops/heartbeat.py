"""Signs of life of our processes, in a table of ours: the queue's own live in a cache nobody else may see."""

from django.utils import timezone

from nahida.ops.models import Heartbeat


def beat(name: str, **detail: object) -> None:
    """Say that a kind of process lives now."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": timezone.now(), "detail": detail})
