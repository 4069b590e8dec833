"""The embedding endpoint: what it is asked, and what becomes of its answers."""

from io import StringIO
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import SimpleTestCase, TestCase, override_settings
from django_q.signals import pre_enqueue

from memory_app.embedding import EmbedError, Status
from memory_app.models import MemoryEmbedding, MemoryItem, VectorIndex
from nahida import queue, tasks
from nahida.agent import embeddings
from nahida.config import Memory
from nahida.ops import health, ticker
from tests.fakes.endpoint import Answer, Endpoint, error
from tests.memory_app.cast import ALICE, remember


def vectors(*values: list[float], **fields: Any) -> Answer:
    data = [{"index": at, "embedding": value} for at, value in enumerate(values)]
    return error(200, {"object": "list", "data": data, "model": "m", **fields})


def configured(base_url: str, **fields: Any):
    memory = Memory(embedding_model="m", embedding_url=base_url, **fields)
    return override_settings(NAHIDA=settings.NAHIDA.model_copy(update={"memory": memory}))


class EndpointTests(SimpleTestCase):
    def asked(self, endpoint: Endpoint, *texts: str, **fields: Any) -> list[list[float]]:
        with configured(endpoint.base_url, **fields):
            embedder = embeddings.embedder(within_s=5)
            assert embedder is not None
            return [list(vector) for vector in embedder.embed(texts)]

    def test_it_asks_for_plain_numbers_with_the_key(self):
        with Endpoint(vectors([1, 0], [0, 1])) as endpoint:
            got = self.asked(endpoint, "a", "b", embedding_api_key="k-1")

        self.assertEqual(got, [[1.0, 0.0], [0.0, 1.0]])
        self.assertEqual(
            endpoint.bodies, [{"model": "m", "input": ["a", "b"], "encoding_format": "float"}]
        )
        self.assertEqual(endpoint.headers[0]["authorization"], "Bearer k-1")

    def test_it_puts_vectors_in_the_order_of_the_texts(self):
        data = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]

        with Endpoint(vectors(data=data)) as endpoint:
            self.assertEqual(self.asked(endpoint, "a", "b"), [[1, 0], [0, 1]])

    def test_it_tells_a_refused_text_from_an_endpoint_that_is_wrong(self):
        for status, body, refused in (
            (400, {"error": {"message": "input is too long"}}, True),
            (422, {"error": {"message": "bad input"}}, True),
            (401, {"error": {"message": "bad key"}}, False),
            (404, "<html>not here</html>", False),
        ):
            with Endpoint(error(status, body)) as endpoint, self.assertRaises(EmbedError) as caught:
                self.asked(endpoint, "a")
            self.assertEqual(caught.exception.refused, refused, status)

    def test_it_takes_what_is_no_answer_for_a_failure(self):
        for answer in (
            error(200, {"data": [{}]}),
            error(200, "nonsense"),
            error(200, {}),
            error(200, "[1]"),
        ):
            with Endpoint(answer) as endpoint, self.assertRaises(EmbedError):
                self.asked(endpoint, "a")

    def test_it_says_that_nobody_is_there(self):
        with configured("http://127.0.0.1:9/v1"), self.assertRaises(EmbedError) as caught:
            embedder = embeddings.embedder(within_s=1)
            assert embedder is not None
            embedder.embed(["a"])

        self.assertIn("http://127.0.0.1:9/v1 cannot be reached", str(caught.exception))


class TaskTests(TestCase):
    def test_it_has_no_embedder_by_default(self):
        tasks.sweep()

        self.assertIsNone(embeddings.query_vector("tea"))
        self.assertFalse(VectorIndex.objects.exists())

    def test_it_gives_vectors_when_the_queue_says_so(self):
        remember(ALICE, "likes tea")
        with Endpoint(vectors([3, 4])) as endpoint, configured(endpoint.base_url):
            embeddings.keep()
            tasks.refresh_embeddings(VectorIndex.objects.get().pk)
            tasks.refresh_embeddings(VectorIndex.objects.get().pk)

        self.assertEqual(MemoryEmbedding.objects.get().dimensions, 2)

    def test_it_is_woken_by_the_ticker(self):
        remember(ALICE, "likes tea")
        woken: list[str] = []

        def note(sender: object, task: dict[str, Any], **_: Any) -> None:
            woken.append(task["func"])

        pre_enqueue.connect(note)
        self.addCleanup(pre_enqueue.disconnect, note)
        with configured("http://127.0.0.1:9/v1"):
            tasks.sweep()
            ticker.tick()
            ticker.tick()

        self.assertEqual(woken, [queue.REFRESH_EMBEDDINGS])

    def test_it_shows_a_change_in_health_and_mends_it(self):
        """Another model was configured: the health page says so and what to do, and that does it."""
        remember(ALICE, "likes tea")
        VectorIndex.objects.create(pk=1, model="old", dimensions=3)
        said = StringIO()
        with Endpoint(vectors([3, 4])) as endpoint, configured(endpoint.base_url):
            before = health.health().problems
            call_command("reindex_memory", stdout=said)
            after = health.health()

        self.assertIn(
            "the vectors are of old, m is configured: run manage.py reindex_memory", before
        )
        self.assertFalse([line for line in after.problems if "vectors" in line])
        self.assertEqual(after.vectors, Status("m", 2, 1, 0))
        self.assertIn("1 vectors of m, 0 wait", said.getvalue())

    def test_it_says_when_a_reindex_did_not_come_to_an_end(self):
        remember(ALICE, "likes tea")

        with configured("http://127.0.0.1:9/v1"), self.assertRaises(CommandError):
            call_command("reindex_memory", stdout=StringIO())

    def test_it_writes_words_anew_without_a_model(self):
        item = remember(ALICE, "likes tea").item
        MemoryItem.objects.update(search_tokens="", content_hash="")
        said = StringIO()

        call_command("reindex_memory", stdout=said)

        again = MemoryItem.objects.get()
        self.assertEqual(
            (again.search_tokens, again.content_hash), (item.search_tokens, item.content_hash)
        )
        self.assertIn("words of 1 items written anew", said.getvalue())

    def test_it_lets_the_index_sleep_when_no_model_is_configured_any_more(self):
        index = VectorIndex.objects.create(pk=1, model="gone", wake_at="2001-01-01T00:00Z")

        tasks.refresh_embeddings(index.pk)

        index.refresh_from_db()
        self.assertIsNone(index.wake_at)
