"""An import that is killed goes on where it was: nothing is lost and nothing comes twice."""

import pytest

from memory_app.models import MemoryTurn
from tests.legacy.dying import DoomedCase
from tests.legacy.folder import Folder
from tests.sessions_app.moving import rows

TOO_MANY = 200


@pytest.mark.processes
class KilledImportTests(Folder, DoomedCase):
    def test_it_finishes_after_a_kill_at_every_step(self) -> None:
        with self.old() as old:
            self.furnish(old)
        # What was stored before a kill stays, so that each attempt gets further.
        for step in range(1, TOO_MANY):
            if self.do("import", self.newest, step) == "done":
                break
        self.assertGreater(step, 5)

        tally = self.bring()

        texts = MemoryTurn.objects.order_by("pk").values_list("content", flat=True)
        self.assertEqual(list(texts), ["hello", "an answer", "hello again"])
        self.assertEqual({kind["imported"] for kind in tally["kinds"].values()}, {0})
        found = rows()
        for label, count in (
            ("scheduler_app.CronJob", 1),
            ("scheduler_app.BackgroundTask", 1),
            ("memory_app.MemoryItem", 1),
            ("memory_app.MemoryEmbedding", 1),
            ("sessions_app.Session", 3),
        ):
            self.assertEqual(len(found[label]), count, label)
