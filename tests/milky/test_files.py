"""Files that people send on QQ: downloaded when they are needed, from an address that is fresh."""

from channels_app.channels import FetchError, get_channel
from channels_app.messages import Attachment
from channels_app.milky.inbound import parse
from memory_app.models import Attachment as Row
from tests.fakes.milky import faults, segments
from tests.fakes.milky.events import SELF, Event
from tests.fakes.pictures import PNG
from tests.milky.site import MilkySite

LIMIT = 1_000_000


class FileTests(MilkySite):
    def file(self, event: Event) -> Attachment:
        message = parse(event, channel="qq")
        (attachment,) = message.attachments  # type: ignore[union-attr]  # it is a message
        return attachment

    def fetch(self, event: Event, *, limit: int = LIMIT) -> bytes:
        return get_channel("qq").fetch(self.file(event), limit=limit)

    def refusal(self, event: Event, *, limit: int = LIMIT) -> FetchError:
        with self.assertRaises(FetchError) as caught:
            self.fetch(event, limit=limit)
        self.assertNotIn("http://", str(caught.exception))
        return caught.exception

    def test_it_downloads_a_picture_though_its_first_address_expired(self):
        event = self.world.friend_says(10001, self.world.image(PNG))
        self.world.expire_urls()

        self.assertEqual(self.fetch(event), PNG)

    def test_it_downloads_what_people_upload(self):
        private, _ = self.world.friend_uploads(10001, b"private")
        group, _ = self.world.group_uploads(10001, 20002, b"for all")

        self.assertEqual(self.fetch(private), b"private")
        self.assertEqual(self.fetch(group), b"for all")

    def test_it_takes_the_first_address_where_the_end_finds_no_other(self):
        event = self.world.friend_says(10001, self.world.image(PNG))
        self.end.fail("get_resource_temp_url", faults.refused(-404))

        self.assertEqual(self.fetch(event), PNG)

    def test_it_shows_the_token_to_the_end_alone(self):
        event = self.world.friend_says(10001, self.world.image(PNG))

        self.fetch(event)

        self.assertNotIn("Authorization", self.end.downloads[0])

    def test_it_says_for_good_that_a_file_is_gone(self):
        event = self.world.friend_says(10001, segments.image("gone", temp_url=""))

        self.assertTrue(self.refusal(event).permanent)

    def test_it_says_that_a_file_may_be_had_later(self):
        event = self.world.friend_says(10001, self.world.image(PNG))
        self.end.fail("get_resource_temp_url", faults.refused(-403))

        self.assertFalse(self.refusal(event).permanent)

    def test_it_takes_no_more_than_the_limit(self):
        event, _ = self.world.friend_uploads(10001, b"x" * 11)

        self.assertTrue(self.refusal(event, limit=10).permanent)

    def test_it_knows_no_file_without_its_place(self):
        for platform_id in ("", "x", "7", "{}", '{"group_id": 1}'):
            with self.subTest(platform_id), self.assertRaises(FetchError) as caught:
                get_channel("qq").fetch(Attachment("file", platform_id=platform_id), limit=1)
            self.assertTrue(caught.exception.permanent)

    def test_it_has_an_uploaded_file_once_and_with_its_content(self):
        self.model.enqueue("thanks")

        self.hear(
            lambda: self.world.friend_uploads(10001, b"milk, eggs", file_name="list.txt"),
            lambda: self.world.friend_says(10001, segments.text("what is it?")),
            self.has_heard(2),
        )
        self.work()

        (row,) = Row.objects.all()
        self.assertEqual((row.name, row.size, row.error), ("list.txt", 10, ""))
        self.assertTrue(row.file)

    def test_it_shows_the_model_what_was_forwarded(self):
        forwarded = segments.forwarded("the key is under the mat", sender_name="阿露")
        seen: list[str] = []
        self.model.enqueue(lambda request: seen.append(request[-1].text) or "I see")  # type: ignore[func-returns-value]

        self.hear(
            lambda: self.world.friend_says(10001, self.world.forward(forwarded)),
            self.has_heard(1),
        )
        self.work()

        self.assertIn("阿露: the key is under the mat", seen[0])
        self.assertIn("not the sender's own words", seen[0])

    def test_it_knows_its_own_words_where_an_old_end_does_not_say_whose_they_are(self):
        self.world.version = "1.1"
        ours = self.world.says("group", 10001, SELF, "tea or coffee?")["data"]["message_seq"]
        self.model.enqueue("tea it is")

        self.hear(
            lambda: self.world.group_says(
                10001, 20002, segments.reply(ours, "tea or coffee?", sender_id=SELF), "tea"
            ),
            self.has_heard(1),
        )
        self.work()

        self.assertEqual(self.world.seen("group", 10001)[1:], ["tea it is"])
