"""Vectors: of one model and size, for every scope, added under a lease (DESIGN 6)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from django.test import TestCase

from memory_app import embedding, items
from memory_app.embedding import Embedder, EmbedError, query_vector
from memory_app.models import MemoryEmbedding, MemoryItem, VectorIndex
from memory_app.scopes import GLOBAL
from memory_app.search import Mode, search
from tests.fakes.embedder import FakeEmbedder
from tests.memory_app.cast import ALICE, BOB, GROUP, remember, scope
from tests.memory_app.stage import give_vectors


def found(query: str, embedder: Embedder, mode: Mode = Mode.HYBRID) -> list[str]:
    vector = query_vector(query, embedder=embedder)
    if vector is None:
        mode = Mode.KEYWORD
    hits = search(query, scope=scope(ALICE), limit=5, mode=mode, vector=vector)
    return [hit.item.content for hit in hits]


def let_time_pass() -> None:
    """Make whatever was put off due."""
    VectorIndex.objects.filter(wake_at__isnull=False).update(wake_at="2001-01-01T00:00Z")


class RefreshTests(TestCase):
    def setUp(self) -> None:
        self.fake = FakeEmbedder()
        self.embedder = self.fake.as_embedder()

    def refresh(self) -> bool:
        let_time_pass()
        return embedding.refresh(VectorIndex.objects.get().pk, embedder=self.embedder)

    def test_it_gives_a_unit_vector_to_what_may_be_recalled_in_any_scope(self):
        for where in (scope(ALICE), scope(GROUP), scope(BOB), GLOBAL):
            remember(where, "likes tea", title="drinks")
        remember(ALICE, "held", held=True)

        give_vectors(self.embedder)

        rows = MemoryEmbedding.objects.all()
        vector = np.frombuffer(rows[0].vector, dtype="<f4")
        self.assertEqual(rows.values("item__scope_id").distinct().count(), 4)
        self.assertEqual({(row.model, row.dimensions) for row in rows}, {("fake-embedder", 64)})
        self.assertAlmostEqual(float(np.linalg.norm(vector)), 1, places=5)
        self.assertEqual(self.fake.asked, ["drinks\nlikes tea"] * 4)

    def test_it_asks_once_for_each_text_and_sleeps(self):
        remember(ALICE, "likes tea")
        give_vectors(self.embedder)

        self.assertFalse(self.refresh())
        give_vectors(self.embedder)

        self.assertEqual(self.fake.asked, ["likes tea"])
        self.assertEqual(embedding.wake_due(), [])

    def test_it_is_woken_by_what_is_stored_edited_and_released(self):
        item = remember(ALICE, "likes tea").item
        held = remember(ALICE, "likes mate", held=True).item
        give_vectors(self.embedder)

        items.edit(
            item.pk, scope=scope(ALICE), version=1, content="likes cocoa", title="", importance=0.5
        )
        [index] = embedding.wake_due()
        embedding.refresh(index, embedder=self.embedder)
        items.release(held.pk, scope=scope(ALICE), version=1)
        [index] = embedding.wake_due()
        embedding.refresh(index, embedder=self.embedder)

        self.assertEqual(self.fake.asked, ["likes tea", "likes cocoa", "likes mate"])

    def test_it_wakes_nobody_where_no_model_was_ever_configured(self):
        remember(ALICE, "likes tea")

        self.assertEqual((embedding.wake_due(), VectorIndex.objects.count()), ([], 0))

    def test_it_is_done_by_one_worker_at_a_time(self):
        remember(ALICE, "likes tea")
        embedding.keep(self.embedder.model)
        inner: list[bool] = []

        def embed(texts):
            let_time_pass()
            inner.append(embedding.refresh(1, embedder=self.embedder))
            return self.fake.embed(texts)

        embedding.refresh(1, embedder=Embedder(self.fake.model, embed))

        self.assertEqual((inner, self.fake.asked), ([False], ["likes tea"]))

    def test_it_stores_nothing_for_what_changed_meanwhile(self):
        """The model is asked outside of any transaction: what is edited or forgotten then gets no vector of its old words."""
        changed, gone = remember(ALICE, "likes tea").item, remember(ALICE, "zq-probe").item
        embedding.keep(self.embedder.model)

        def embed(texts):
            items.forget(gone.pk, scope=scope(ALICE))
            items.edit(
                changed.pk,
                scope=scope(ALICE),
                version=1,
                content="likes mate",
                title="",
                importance=1,
            )
            return self.fake.embed(texts)

        embedding.refresh(1, embedder=Embedder(self.fake.model, embed))

        self.assertEqual(MemoryEmbedding.objects.count(), 0)

    def test_it_stores_nothing_after_a_reindex_took_the_lease(self):
        remember(ALICE, "likes tea")
        embedding.keep(self.embedder.model)

        def embed(texts):
            embedding.reindex("another")
            return self.fake.embed(texts)

        embedding.refresh(1, embedder=Embedder(self.fake.model, embed))

        index = VectorIndex.objects.get()
        self.assertEqual((MemoryEmbedding.objects.count(), index.model), (0, "another"))

    def test_it_tries_again_later_what_failed(self):
        remember(ALICE, "likes tea")
        embedding.keep(self.embedder.model)
        self.fake.fails = EmbedError("down")

        self.refresh()
        at_once = embedding.wake_due()
        self.fake.fails = None
        self.refresh()

        self.assertEqual((at_once, MemoryEmbedding.objects.count()), ([], 1))
        self.assertEqual(VectorIndex.objects.get().failures, 0)

    def test_it_lets_one_refused_text_not_stand_in_the_way(self):
        remember(ALICE, "likes tea")
        remember(ALICE, "poison")
        remember(ALICE, "likes mate")
        embedding.keep(self.embedder.model)

        def embed(texts):
            if "poison" in texts:
                raise EmbedError("too long", refused=True)
            return self.fake.embed(texts)

        picky = Embedder(self.fake.model, embed)
        embedding.refresh(1, embedder=picky)

        self.assertEqual(found("tea", picky, Mode.VECTOR)[0], "likes tea")
        self.assertNotIn("poison", found("tea", picky, Mode.VECTOR))
        self.assertEqual(embedding.status(picky.model).waiting, 0)

    def test_it_does_not_take_a_wrong_model_for_wrong_texts(self):
        remember(ALICE, "likes tea")
        remember(ALICE, "likes mate")
        embedding.keep(self.embedder.model)
        self.fake.fails = EmbedError("no such model", refused=True)

        self.refresh()

        self.assertEqual(MemoryEmbedding.objects.count(), 0)

    def given(self, answer: list[list[float]], texts: Sequence[str]) -> list[list[float]]:
        return answer

    def test_it_refuses_vectors_that_are_none(self):
        remember(ALICE, "likes tea")
        embedding.keep("m")
        answers: list[list[list[float]]] = [[], [[]], [[0, 0]], [[float("nan"), 1]], [[1], [1]]]
        for answer in answers:
            let_time_pass()
            embedding.refresh(1, embedder=Embedder("m", partial(self.given, answer)))

        self.assertEqual(MemoryEmbedding.objects.count(), 0)
        self.assertEqual(VectorIndex.objects.get().failures, 5)

    def test_it_goes_on_where_a_batch_ended(self):
        for number in range(embedding.BATCH + 3):
            remember(ALICE, f"tea {number}")

        give_vectors(self.embedder)

        self.assertEqual(MemoryEmbedding.objects.count(), embedding.BATCH + 3)


class ChangeTests(TestCase):
    def setUp(self) -> None:
        for number in range(20):
            remember(ALICE, f"likes tea no. {number}")
        self.small = FakeEmbedder(dimensions=64).as_embedder()
        give_vectors(self.small)

    def test_it_notices_another_size_searches_by_keyword_and_is_mended(self):
        """The same model, 64 numbers yesterday and 128 today."""
        large = FakeEmbedder(dimensions=128).as_embedder()
        remember(ALICE, "likes mate")
        give_vectors(large)

        status = embedding.status(large.model)
        self.assertIn(
            "had 64 numbers and have 128 now: run manage.py reindex_memory", status.problem
        )
        self.assertEqual((status.waiting, query_vector("tea", embedder=large)), (1, None))
        self.assertEqual(len(found("tea", large)), 5)

        embedding.reindex(large.model)
        give_vectors(large)
        self.assertEqual(
            (embedding.status(large.model).problem, len(found("tea", large, Mode.VECTOR))), ("", 5)
        )

    def test_it_notices_another_model_and_is_mended(self):
        other = FakeEmbedder(model="another").as_embedder()
        remember(ALICE, "likes mate")
        give_vectors(other)

        status = embedding.status("another")
        self.assertIn("of fake-embedder, another is configured: run manage.py", status.problem)
        self.assertEqual(found("mate", other), ["likes mate"])
        self.assertEqual(MemoryEmbedding.objects.filter(model="another").count(), 0)

        embedding.reindex("another")
        give_vectors(other)
        self.assertEqual(embedding.status("another").problem, "")
        self.assertEqual(set(MemoryEmbedding.objects.values_list("model", flat=True)), {"another"})

    def test_it_goes_on_by_itself_when_the_old_model_is_back(self):
        give_vectors(FakeEmbedder(model="another").as_embedder())
        remember(ALICE, "likes mate")

        give_vectors(self.small)

        self.assertEqual(
            embedding.status(self.small.model), embedding.Status("fake-embedder", 64, 21, 0)
        )

    def test_it_says_how_many_wait(self):
        remember(BOB, "likes mate")

        self.assertEqual(embedding.status(self.small.model).waiting, 1)

    def test_it_has_nothing_to_say_without_a_model(self):
        self.assertEqual(embedding.status(""), embedding.Status())

    def test_it_searches_by_keyword_when_the_endpoint_is_down(self):
        down = FakeEmbedder()
        down.fails = EmbedError("down")

        with self.assertLogs("memory_app.embedding", "WARNING") as log:
            self.assertEqual(len(found("tea", down.as_embedder())), 5)

        self.assertNotIn("tea", str(log.output))

    def test_it_leaves_a_vector_with_what_moves(self):
        item = MemoryItem.objects.earliest("pk")

        items.move(item.pk, scope=scope(ALICE), to=scope(BOB), version=1)

        vector = query_vector("likes tea no. 0", embedder=self.small)
        [hit] = search("tea", scope=scope(BOB), limit=5, mode=Mode.VECTOR, vector=vector)
        self.assertEqual(hit.item, item)
