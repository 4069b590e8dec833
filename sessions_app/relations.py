"""Which rows point to a row, found by walking the models: a table that is added later is not forgotten."""

from collections.abc import Iterator

from django.db import models


def pointing_at(target: type[models.Model]) -> Iterator[tuple[type[models.Model], str]]:
    """Yield model and column of every ForeignKey to `target`, hidden ones and many-to-many tables included.

    `related_objects` would skip a `related_name="+"`.
    """
    for relation in target._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            yield relation.field.model, relation.field.name
