"""Vectors of items: float32, of unit length, of one model at a time. The caller brings the model (DESIGN 6)."""

from channels_app.clock import DbNow
from memory_app.models import VectorIndex


def wake() -> None:
    """Let a worker look for items without a vector. Where no model is configured there is no row, and nothing happens."""
    VectorIndex.objects.filter(wake_at=None).update(wake_at=DbNow(), woken_at=None)
