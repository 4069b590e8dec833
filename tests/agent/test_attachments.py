"""Files come into the media store before the model is asked, within limits, and none of them fails a turn."""

from collections.abc import Callable

from django.conf import settings
from django.db import connection
from django.test import override_settings

from channels_app import media
from channels_app.addresses import ChatAddress
from channels_app.channels import FetchError
from channels_app.messages import Attachment as Sent
from memory_app.models import Attachment, MemoryTurn
from nahida.agent import attachments
from nahida.config import Files
from sessions_app.models import Lane
from tests.base import ALICE, BOB, GROUP
from tests.lanes.stage import CommittedLaneTestCase, Killed, LaneStage, LaneTestCase, meanwhile

ELSEWHERE = ChatAddress("fake-alt", "private", "10001")
GONE = FetchError("it was deleted", permanent=True)
CUT_OFF = FetchError("the connection was cut off")


def limits(**keys: int) -> override_settings:
    return override_settings(
        NAHIDA=settings.NAHIDA.model_copy(update={"files": Files(**keys)}),
    )


class AttachmentStage(LaneStage):
    def send(
        self,
        *ids: str,
        to: ChatAddress = ALICE,
        text: str = "look",
        kind: str = "file",
        **more: object,
    ) -> None:
        """Let a message arrive with files of those ids."""
        size = more.pop("size", None)
        files = tuple(Sent(kind, platform_id=id_, name=id_, size=size) for id_ in ids)  # type: ignore[arg-type]
        self.say(to, text, attachments=files, **more)

    def offer(self, **files: bytes) -> None:
        """Let the platform have files to be asked for, by id."""
        self.platform().files |= files

    def answer(self, *, times: int = 1) -> None:
        self.model.enqueue(*["ok"] * times)
        self.work()

    def row(self, id_: str) -> Attachment:
        return Attachment.objects.get(platform_id=id_)

    def content(self, id_: str) -> bytes | None:
        file = self.row(id_).file
        return media.read(file) if file else None

    def asked_for(self) -> list[str]:
        return self.platform().fetched

    def plan(self, *steps: Exception | Callable[[], object] | None) -> None:
        self.platform().fetch_plan.extend(steps)


class FetchTests(AttachmentStage, LaneTestCase):
    def test_it_keeps_what_a_message_carries(self):
        self.offer(a=b"one", b=b"three")
        self.send("a", "b")

        self.answer()

        self.assertEqual((self.content("a"), self.content("b")), (b"one", b"three"))
        self.assertEqual((self.row("b").size, self.row("b").error), (5, ""))
        self.assertEqual(self.answers(ALICE), ["ok"])

    def test_it_downloads_pictures_and_documents_only(self):
        for kind in ("voice", "audio", "video", "sticker"):
            self.send(kind, kind=kind)

        self.answer()

        self.assertEqual(self.asked_for(), [])

    def test_it_asks_the_account_that_the_message_came_to(self):
        self.platform("fake-alt").files["a"] = b"alt"
        self.send("a", to=ELSEWHERE)

        self.answer()

        self.assertEqual(self.content("a"), b"alt")
        self.assertEqual(self.asked_for(), [])

    def test_it_says_why_a_file_cannot_be_had_and_answers(self):
        self.plan(GONE)
        self.send("a")

        self.answer()

        self.assertEqual((self.row("a").error, self.content("a")), ("it was deleted", None))
        self.assertIn(
            "[file a; could not be downloaded: it was deleted]", self.model.requests[-1].last
        )

    def test_it_tries_once_more_what_may_pass(self):
        self.offer(a=b"one", b=b"two")
        self.plan(CUT_OFF, None, CUT_OFF, CUT_OFF)
        self.send("a", "b")

        self.answer()

        self.assertEqual((self.content("a"), self.row("a").error), (b"one", ""))
        self.assertEqual((self.content("b"), self.row("b").error), (None, str(CUT_OFF)))

    def test_it_survives_whatever_a_channel_raises(self):
        self.plan(ZeroDivisionError("a fault of the channel"))
        self.send("a")

        with self.assertLogs("nahida.agent.attachments", "ERROR"):
            self.answer()

        self.assertEqual(self.row("a").error, "something went wrong on the way")

    def test_it_does_not_ask_a_channel_that_is_gone(self):
        self.send("a")
        MemoryTurn.objects.update(origin="closed:private:10001")

        self.answer()

        self.assertIn('no channel "closed"', self.row("a").error)

    def test_it_does_not_ask_again_for_what_is_kept_or_cannot_be_had(self):
        self.offer(a=b"one")
        self.plan(None, GONE)
        self.send("a", "b")
        self.answer()

        self.send("c", text="and now?")
        self.answer()

        self.assertEqual(self.asked_for(), ["a", "b", "c"])

    def test_it_holds_no_transaction_over_the_network(self):
        open_blocks: list[int] = []
        self.plan(lambda: open_blocks.append(len(connection.savepoint_ids)))
        self.send("a")

        self.answer()

        self.assertEqual(open_blocks, [len(connection.savepoint_ids)])


class LimitTests(AttachmentStage, LaneTestCase):
    def errors(self) -> list[str]:
        return list(Attachment.objects.order_by("pk").values_list("error", flat=True))

    @limits(largest_mb=1)
    def test_it_does_not_ask_for_what_is_said_to_be_too_large(self):
        self.send("a", size=1_000_001)

        self.answer()

        self.assertEqual((self.errors(), self.asked_for()), (["larger than 1 MB"], []))

    @limits(largest_mb=1)
    def test_it_takes_no_more_than_the_limit_whatever_the_platform_said(self):
        self.offer(a=b"x" * 1_000_001, b=b"x" * 1_000_000)
        self.send("a", "b", size=5)

        self.answer()

        self.assertIn("larger than", self.row("a").error)
        self.assertEqual(self.row("b").size, 1_000_000)

    @limits(per_turn=2)
    def test_it_downloads_so_many_files_for_one_turn(self):
        self.offer(a=b"1", b=b"2", c=b"3")
        self.send("a", "b", "c")

        self.answer()

        self.assertEqual(self.errors(), ["", "", "more than 2 files at once"])

    @limits(per_turn=0)
    def test_it_downloads_nothing_if_told_so(self):
        self.send("a")

        self.answer()

        self.assertEqual((self.errors(), self.asked_for()), (["downloads are switched off"], []))

    @limits(turn_mb=1)
    def test_it_downloads_so_much_for_one_turn(self):
        self.offer(a=b"x" * 900_000, b=b"x" * 200_000, c=b"x" * 100_000)
        self.send("a", "b", "c")

        self.answer()

        self.assertEqual(self.row("a").size, 900_000)
        self.assertIn("larger than 100 kB", self.row("b").error)
        self.assertEqual(self.row("c").size, 100_000)

    def test_it_begins_no_download_when_the_time_is_up(self):
        self.send("a")
        lane, token = self.lane(ALICE), self.claim(ALICE)
        batch = list(MemoryTurn.objects.all())

        attachments.fetch(lane.pk, token, batch, is_private=True, deadline=0.0, check=lambda: None)

        self.assertEqual((self.errors(), self.asked_for()), (["there was no time left"], []))

    def test_it_ends_at_once_when_the_turn_is_stopped(self):
        self.offer(a=b"1", b=b"2")
        self.plan(lambda: self.say(ALICE, "/stop"))
        self.send("a", "b")

        self.work()

        self.assertEqual(self.asked_for(), ["a"])
        self.assertEqual(self.lines(ALICE)[0][2], "stopped")


class HeardTests(AttachmentStage, LaneTestCase):
    """Who asks about a picture in a group sent it before, or somebody else did."""

    def test_it_fetches_what_was_sent_since_the_last_answer(self):
        self.offer(a=b"1", b=b"2")
        self.send("a", to=GROUP, addressed=False)
        self.say(GROUP, "what do you make of this?")
        self.answer()
        self.send("b", to=GROUP, addressed=False)

        self.assertEqual(self.asked_for(), ["a"])
        self.assertEqual(self.content("a"), b"1")

    def test_it_leaves_alone_what_came_before_the_last_answer(self):
        with limits(per_turn=0):
            self.send("a", to=GROUP, addressed=False)
            self.say(GROUP, "hello")
            self.answer()

        self.say(GROUP, "and how are you?")
        self.answer()

        self.assertEqual(self.asked_for(), [])

    def test_it_fetches_what_a_question_replies_to(self):
        self.offer(a=b"1")
        with limits(per_turn=0):
            self.send("a", to=GROUP, addressed=False, message_id="500")
            self.say(GROUP, "hello")
            self.answer()

        self.say(GROUP, "what is this?", reply_to="500")
        self.answer()

        self.assertEqual(self.content("a"), b"1")

    def test_it_fetches_nothing_of_another_chat(self):
        """Message ids mean something in their own chat only; alice's number is the group's, too."""
        for other in (ALICE, BOB):
            with limits(per_turn=0):
                self.send(f"of-{other.target_id}", to=other, message_id="500")
                self.answer()
        Attachment.objects.update(error="")

        self.say(GROUP, "what is this?", reply_to="500")
        self.answer()

        self.assertEqual(self.asked_for(), [])
        self.assertNotIn("[file", self.model.requests[-1].last)

    @limits(per_turn=1)
    def test_it_fetches_first_what_belongs_to_the_question(self):
        self.offer(a=b"1", b=b"2")
        self.send("a", to=GROUP, addressed=False)
        self.send("b", to=GROUP)

        self.answer()

        self.assertEqual(self.asked_for(), ["b"])
        self.assertEqual(self.row("a").error, "")


class RetakeTests(AttachmentStage, CommittedLaneTestCase):
    def die_over_files(self) -> None:
        with self.assertRaises(Killed):
            self.run_lane(ALICE)
        self.expire_lease(ALICE)

    def test_it_does_not_download_twice_what_is_kept(self):
        self.offer(a=b"one", b=b"two")
        self.plan(None, _die)
        self.send("a", "b")
        self.die_over_files()

        self.answer()

        self.assertEqual(self.asked_for(), ["a", "b", "b"])
        self.assertEqual((self.content("a"), self.content("b")), (b"one", b"two"))
        self.assertEqual(self.answers(ALICE), ["ok"])

    def test_it_does_not_ask_again_for_what_cannot_be_had(self):
        self.plan(GONE, _die)
        self.send("a", "b")
        self.die_over_files()

        self.answer()

        self.assertEqual(self.asked_for(), ["a", "b", "b"])

    @limits(per_turn=2)
    def test_it_counts_what_was_kept_before(self):
        self.offer(a=b"1", b=b"2", c=b"3")
        self.plan(None, _die)
        self.send("a", "b", "c")
        self.die_over_files()

        self.answer()

        self.assertEqual(self.row("c").error, "more than 2 files at once")

    def test_it_leaves_no_row_without_its_file_when_it_dies_in_between(self):
        self.offer(a=b"one")
        self.send("a")
        with meanwhile('UPDATE "memory_app_attachment"', _die):
            self.die_over_files()
        self.assertEqual(self.row("a").file, "")

        self.answer()

        self.assertEqual(self.content("a"), b"one")

    def test_it_writes_nothing_for_a_lane_that_it_lost(self):
        self.offer(a=b"one")
        self.plan(lambda: Lane.objects.update(token=None))
        self.send("a")

        self.run_lane()

        self.assertEqual((self.row("a").file, self.row("a").error), ("", ""))


def _die() -> None:
    raise Killed
