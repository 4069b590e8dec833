"""What becomes of the old bot's jobs when a record is applied."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from channels_app.addresses import ChatAddress
from nahida.legacy.inspect import inspect
from scheduler_app.models import CronJob
from sessions_app.models import Chat, Session
from tests.legacy.imported import BASE, GROUP, PRIVATE, old_chat, old_job, old_session, record
from tests.legacy.test_apply import ApplyCase

HOUR = timedelta(hours=1)


class JobTest(ApplyCase):
    def job(
        self, key: str = BASE, *, active: bool = True, imported: Any = None, **columns: Any
    ) -> CronJob:
        job = old_job(key, active=active, **imported or {})
        CronJob.objects.filter(pk=job.pk).update(time_zone="UTC", **columns)
        return job

    def after(self, job: CronJob) -> CronJob:
        return CronJob.objects.select_related("chat").get(pk=job.pk)

    def test_it_ties_a_job_to_the_chat_and_plans_its_next_run(self):
        """The first instant after now on the old grid: what was missed meanwhile is not made up for."""
        old_session(BASE, GROUP)
        planned = datetime(2026, 5, 12, 9, 30, tzinfo=UTC)
        job = self.job(imported={"next_fire_at": planned.isoformat()})
        before = timezone.now()

        self.through()

        tied = self.after(job)
        assert str(tied.chat) == GROUP
        assert tied.active
        assert tied.imported_key == BASE
        assert tied.next_fire_at is not None
        assert before < tied.next_fire_at <= timezone.now() + HOUR
        assert (tied.next_fire_at - planned) % HOUR == timedelta(0)

    def test_it_reads_cron_as_the_old_bot_did(self):
        old_session(BASE, GROUP)
        job = self.job(mode="cron", cron_expression="30 8 * * *")

        self.through()

        next_fire = self.after(job).next_fire_at
        assert next_fire is not None
        assert f"{next_fire.astimezone(UTC):%H:%M}" == "08:30"

    def test_it_leaves_a_finished_job_finished(self):
        old_session(BASE, GROUP)
        job = self.job(active=False)

        self.through()

        tied = self.after(job)
        assert (str(tied.chat), tied.active, tied.next_fire_at) == (GROUP, False, None)

    def test_it_does_not_run_what_should_have_run_long_ago(self):
        old_session(BASE, GROUP)
        job = self.job(mode="once", run_at=timezone.now() - HOUR)

        self.through()

        assert (self.after(job).active, self.after(job).next_fire_at) == (True, None)

    def test_it_switches_off_what_can_never_run(self):
        old_session(BASE, GROUP)
        job = self.job(mode="cron", cron_expression="often")

        self.through()

        off = self.after(job)
        assert (str(off.chat), off.active) == (GROUP, False)
        assert "is no cron expression" in off.paused_reason

    def test_it_switches_off_a_job_whose_chat_nothing_names(self):
        old_session(BASE)
        job = self.job()

        (outcome,) = self.through()

        off = self.after(job)
        assert (outcome.result, off.active, off.chat) == ("cron_disabled", False, None)
        assert "the chat type is unknown" in off.last_error

    def test_it_switches_off_a_job_without_any_session(self):
        job = self.job("milky:30002")

        (outcome,) = self.through("milky:30002")

        assert (outcome.result, self.after(job).active) == ("cron_disabled", False)
        assert not Session.objects.exists()

    def test_it_ties_a_job_without_a_session_where_a_person_says_so(self):
        job = self.job("milky:30002")
        inspect(who="alice")
        self.decide("milky:30002", "force_rename", new_key="milky:group:30002")

        outcome = self.apply("milky:30002")

        assert (outcome.result, str(self.after(job).chat)) == ("renamed", "milky:group:30002")
        assert Chat.objects.get(chat_key="milky:group:30002").access == "allowed"

    def test_it_switches_off_a_job_whose_number_names_two_chats(self):
        """Even if the session with its own key is clean."""
        old_session(BASE, PRIVATE)
        old_session(f"{BASE}:abcd1234", GROUP)
        job = self.job()

        self.through()

        assert record().result == "renamed"
        assert (self.after(job).active, self.after(job).chat) == (False, None)

    def test_it_leaves_the_jobs_of_a_session_that_is_rejected(self):
        old_session(BASE, GROUP)
        job = self.job()
        inspect(who="alice")
        self.decide(BASE, "rejected")

        self.apply()

        assert (self.after(job).active, self.after(job).chat) == (True, None)

    def test_it_switches_off_the_job_of_a_session_that_is_kept_all_the_same(self):
        """It would wait for ever without saying so."""
        old_session(BASE, GROUP)
        job = self.job()
        inspect(who="alice")
        self.decide(BASE, "force_keep_legacy")

        self.apply()

        assert (self.after(job).active, self.after(job).chat) == (False, None)
        assert "the chat type is unknown" in self.after(job).paused_reason

    def test_it_believes_a_job_that_says_its_chat(self):
        """Whatever becomes of the session."""
        old_session(BASE)
        stated = {"platform": "milky", "chat_type": "group", "chat_id": "10001"}
        job = self.job(imported=stated)
        inspect(who="alice")
        self.decide(BASE, "force_keep_legacy")

        self.apply()

        assert (record().result, str(self.after(job).chat)) == ("kept_legacy", GROUP)

    def test_it_ties_the_job_of_a_cron_session_to_the_chat(self):
        """Not to the session of the job: that is its own affair."""
        old_session(f"{BASE}:cron:j1")
        job = self.job(
            BASE, imported={"platform": "milky", "chat_type": "group", "chat_id": "10001"}
        )

        (outcome,) = self.through(f"{BASE}:cron:j1")

        assert outcome.new_key == f"{GROUP}:cron:j1"
        assert str(self.after(job).chat) == GROUP

    def test_it_gives_a_typed_chat_of_the_old_bot_its_next_run(self):
        old_session(f"{GROUP}:x", GROUP)
        old_session(BASE, GROUP)
        job = self.job(GROUP)
        CronJob.objects.filter(pk=job.pk).update(
            chat=old_chat(ChatAddress("milky", "group", "10001")), imported_key=BASE
        )

        self.through()

        assert self.after(job).next_fire_at is not None
