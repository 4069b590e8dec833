"""Importing an old database: everything comes in once, nothing of the file changes, and the sums add up."""

import io
import os
import stat

from django.core.management import CommandError, call_command

from memory_app.models import Attachment, MemoryItem, MemoryTurn, TurnState
from nahida.legacy.apply import apply_record
from nahida.legacy.decide import decide
from nahida.legacy.importing.reader import OldFileError, opened
from nahida.legacy.importing.run import run
from nahida.legacy.importing.turns import BATCH, AnotherImportError
from nahida.legacy.inspect import inspect
from nahida.legacy.models import Source
from scheduler_app.models import BackgroundTask, CronJob
from sessions_app.models import Access, Approval, Chat, Lane, MigrationLog, Session
from tests.legacy.builder import NEWEST
from tests.legacy.folder import FolderCase

KEY = "milky:10001"
GROUP = "milky:group:10001"


class ImportTests(FolderCase):
    def test_it_keeps_the_old_key_and_guesses_no_type(self):
        with self.old() as old:
            old.session(KEY, metadata={"model": "large"})
        self.bring()

        session = Session.objects.get()
        self.assertEqual((session.key, session.chat.target_type), (KEY, "unknown"))  # type: ignore[union-attr]
        self.assertEqual(session.imported["metadata"], {"model": "large"})  # type: ignore[index]
        self.assertEqual(Chat.objects.get().access, Access.PENDING)

    def test_it_brings_a_key_that_nobody_can_read(self):
        with self.old() as old:
            for key in ("onlyone", "milky:", ":1", "__global__"):
                old.session(key)
                old.turn(key)
        self.bring()

        self.assertEqual(Session.objects.filter(chat=None).count(), 4)
        self.assertEqual(MemoryTurn.objects.count(), 4)

    def test_it_keeps_the_ids_of_turns_in_an_empty_database(self):
        with self.old() as old:
            old.session(KEY)
            ids = old.talk(KEY, GROUP, times=2)
        self.bring()

        turns = MemoryTurn.objects.order_by("pk")
        self.assertEqual([turn.pk for turn in turns], ids)
        self.assertEqual({turn.state for turn in turns}, {TurnState.DONE})
        self.assertEqual({turn.lane for turn in turns}, {None})

    def test_it_gives_new_turns_ids_behind_the_old_ones(self):
        with self.old() as old:
            old.session(KEY)
            last = old.turn(KEY, id=5000)
        self.bring()

        self.assertGreater(self.new_turn(), last)

    def test_it_maps_the_ids_where_they_are_taken(self):
        taken = self.new_turn()
        with self.old() as old:
            old.session(KEY)
            first = old.turn(KEY, "first")
            old.turn(KEY, "fork", metadata={"forked_turn_id": first})
        self.bring()

        turns = MemoryTurn.objects.filter(session__key=KEY).order_by("pk")
        self.assertGreater(turns[0].pk, taken)
        self.assertEqual(turns[1].metadata["forked_turn"], turns[0].pk)
        self.assertGreater(self.new_turn(), turns[1].pk)

    def test_it_reads_the_envelope_once_and_keeps_it(self):
        with self.old() as old:
            old.session(KEY)
            old.turn(KEY, chat=GROUP)
            old.answer(KEY)
        self.bring()

        asked, answered = MemoryTurn.objects.order_by("pk")
        self.assertEqual((asked.origin, asked.sender), (GROUP, "milky:user:20002"))
        self.assertEqual(asked.sender_name, "Ali")
        self.assertIsNotNone(asked.sent_at)
        self.assertIn("message_context", asked.imported["metadata"])  # type: ignore[index]
        self.assertEqual((answered.origin, answered.sender), ("", ""))

    def test_it_finds_no_address_in_a_type_that_is_none(self):
        for number, word in enumerate(("unknown", "friend", "temp", "supergroup", "Group", "")):
            with self.old(f"{number}.db") as old:
                old.session(f"milky:{number}")
                old.turn(f"milky:{number}", chat=f"milky:{word}:{number}")
            self.bring(name=str(number))

        self.assertEqual({turn.origin for turn in MemoryTurn.objects.all()}, {""})

    def test_it_bears_any_json(self):
        with self.old() as old:
            old.session(KEY, metadata="{broken")
            for raw in ("null", "[]", '"text"', "7", "{broken", '{"message_context": []}', None):
                old.turn(KEY, metadata=raw)
            number = {"message_context": {"channel": " milky ", "chat_type": "group", "chat_id": 7}}
            old.turn(KEY, metadata=number)
        self.bring()

        self.assertEqual(MemoryTurn.objects.count(), 8)
        self.assertEqual(Session.objects.get().imported["raw_metadata"], "{broken")  # type: ignore[index]
        self.assertEqual(MemoryTurn.objects.latest("pk").origin, "milky:group:7")

    def test_it_describes_the_files_of_a_turn(self):
        with self.old() as old:
            old.session(KEY)
            old.turn(KEY, metadata={"attachments": [{"kind": "image", "description": "[图片]"}, 7]})
        self.bring()

        file = Attachment.objects.get()
        self.assertEqual((file.kind, file.text, file.file), ("image", "[图片]", ""))

    def test_it_keeps_an_override_and_its_session(self):
        with self.old() as old:
            old.session(KEY)
            old.override(KEY, old.session(f"{KEY}:9c5e96eb"))
            old.override("milky:7", "milky:7:00000001")
        self.bring()

        active = {lane.chat.target_id: lane.active_session.key for lane in Lane.objects.all()}
        self.assertEqual(active, {"10001": f"{KEY}:9c5e96eb", "7": "milky:7:00000001"})
        missing = Session.objects.get(key="milky:7:00000001")
        self.assertEqual(missing.imported["missing"], True)  # type: ignore[index]

    def test_it_keeps_a_job_switched_on_but_lets_it_wait(self):
        with self.old() as old:
            old.job(KEY)
            old.job("agent:task_1", job_id="j2", is_active=0)
            old.job("odd", job_id="j3", mode="cron", cron_expression="0 9 * * 0")
        self.bring()

        jobs = {job.imported["job_id"]: job for job in CronJob.objects.all()}  # type: ignore[index]
        self.assertEqual((jobs["j1"].active, jobs["j1"].next_fire_at), (True, None))
        self.assertEqual((jobs["j2"].active, jobs["j2"].imported_key), (False, "agent:task_1"))
        self.assertEqual((jobs["j3"].chat, jobs["j3"].time_zone), (None, "UTC"))

    def test_it_ends_the_tasks_that_were_under_way(self):
        with self.old() as old:
            old.session(KEY)
            old.task(KEY, None, task_id="t1", status="running")
            old.task(KEY, f"{KEY}:subagent:t2", task_id="t2")
        self.bring()

        states = {task.imported["task_id"]: task.state for task in BackgroundTask.objects.all()}  # type: ignore[index]
        self.assertEqual(states, {"t1": "lost", "t2": "succeeded"})

    def test_it_holds_what_everybody_would_recall_of_one_chat(self):
        with self.old() as old:
            old.item("mem_1", kind="fact", evidence={"session_id": KEY})
            old.item("mem_2", kind="decision")
            old.item("mem_3", kind="fact", scope_type="session", scope_id=KEY)
            old.item("mem_4", scope_id="")
        tally = self.bring()

        held = {item.imported["item_id"]: item.held for item in MemoryItem.objects.all()}  # type: ignore[index]
        self.assertEqual(held, {"mem_1": True, "mem_2": False, "mem_3": False})
        self.assertEqual(tally["kinds"]["memory items"]["skipped"], {"it has no scope": ["mem_4"]})

    def test_it_keeps_the_newest_vector_as_a_unit_vector(self):
        with self.old() as old:
            old.item("mem_1")
            old.embedding("mem_1", [3.0, 4.0], embedding_id="e1")
            old.embedding("mem_1", [0.0, 2.0], embedding_id="e2")
            old.embedding("mem_1", "[broken", embedding_id="e3")
            old.embedding("mem_1", [0.0, 0.0], embedding_id="e4", model="other")
        tally = self.bring()

        [vector] = MemoryItem.objects.get().embeddings.all()
        self.assertEqual((vector.dimensions, bytes(vector.vector)), (2, b"\0\0\0\0\0\0\x80\x3f"))
        self.assertEqual(tally["kinds"]["embeddings"]["imported"], 1)

    def test_it_goes_by_the_age_of_vectors_and_keeps_ours(self):
        with self.old() as old:
            old.item("mem_1")
            old.embedding("mem_1", [1.0, 0.0], embedding_id="e1", created_at="2026-05-11 10:00:00")
            old.embedding(
                "mem_1", [0.0, 1.0], embedding_id="e2", created_at="2026-05-11T11:00+02:00"
            )
            self.bring()
            old.embedding("mem_1", [0.0, 1.0], embedding_id="e3", created_at="2026-06-01")
            tally = self.bring()

        [vector] = MemoryItem.objects.get().embeddings.all()
        self.assertEqual(bytes(vector.vector), b"\0\0\x80\x3f\0\0\0\0")
        skipped = tally["kinds"]["embeddings"]["skipped"]
        self.assertEqual(skipped["its item has one of this model here"], ["e3"])

    def test_it_honours_what_was_moved_before(self):
        with self.old(version=11) as old:
            old.session(GROUP)
            old.log("milky:10001", GROUP)
            old.log("milky:7", None, "kept_legacy")
        self.bring()

        logged = {record.old_key: record.result for record in MigrationLog.objects.all()}
        self.assertEqual(logged, {"milky:10001": "renamed", "milky:7": "kept_legacy"})
        self.assertEqual(Session.objects.get().chat.target_type, "group")  # type: ignore[union-attr]

    def test_it_finds_the_topic_of_an_override(self):
        topic = "telegram:group:-100:42"
        with self.old(version=11) as old:
            old.override(topic, old.session(f"{topic}:abcd1234"))
            old.override("milky:7:abcd1234", old.session("milky:7"))
        tally = self.bring()

        self.assertEqual(Lane.objects.get().thread, "42")
        skipped = tally["kinds"]["active sessions"]["skipped"]
        self.assertEqual(skipped, {"it is no key of a chat": ["milky:7:abcd1234"]})

    def test_it_skips_the_turns_of_a_session_that_cannot_be_kept(self):
        with self.old() as old:
            odd = old.session("milky:" + "x" * 1_000)
            old.turn(odd)
            old.turn("", "of no session")
            old.turn(old.session(KEY), "of a session")
        first, again = self.bring(), self.bring()

        self.assertEqual(MemoryTurn.objects.get().content, "of a session")
        for tally in (first, again):
            self.assertEqual(
                tally["kinds"]["turns"]["skipped"], {"its session did not come in": ["1", "2"]}
            )
        self.assertEqual(again["kinds"]["turns"]["already_there"], 1)

    def test_it_brings_turns_that_were_numbered_by_hand(self):
        with self.old() as old:
            old.session(KEY)
            for number in (-7, 0, 3):
                old.turn(KEY, str(number), id=number)
        self.bring()

        texts = MemoryTurn.objects.order_by("pk").values_list("content", flat=True)
        self.assertEqual(list(texts), ["-7", "0", "3"])

    def test_it_keeps_what_two_databases_say_of_one_session(self):
        for number in (1, 2):
            with self.old(f"{number}.db") as old:
                old.session(KEY, metadata={"model": number})
                old.turn(KEY, f"of {number}")
            self.bring(name=str(number))

        session = Session.objects.get()
        self.assertEqual(session.turns.count(), 2)
        self.assertEqual(session.imported["metadata"], {"model": 1})  # type: ignore[index]
        self.assertEqual(session.imported["merged"][0]["metadata"], {"model": 2})  # type: ignore[index]

    def test_it_joins_a_typed_session_that_began_here_meanwhile(self):
        pk = self.new_turn(at=GROUP)
        with self.old(version=11) as old:
            old.session(GROUP)
            old.turn(GROUP, "long ago")
        self.bring()

        turns = Session.objects.get(key=GROUP).turns
        self.assertEqual(turns.count(), 2)
        self.assertTrue(turns.filter(pk=pk).exists())

    def test_it_counts_orphans_and_goes_on(self):
        with self.old() as old:
            old.turn("milky:gone", "an orphan")
            old.insert("memory_keywords", turn_id=999, keyword="x")
            old.embedding("mem_gone", [1.0], embedding_id="e1")
            old.task("milky:gone2", None, task_id="t1")
        tally = self.bring()

        self.assertEqual(tally["kinds"]["sessions without a row"]["imported"], 2)
        self.assertEqual(tally["kinds"]["embeddings"]["skipped"], {"its item is not here": ["e1"]})

    def test_it_reads_every_version(self):
        for version in range(1, NEWEST + 1):
            with self.subTest(version):
                with self.old(f"v{version}.db", version=version) as old:
                    key = old.session(f"milky:{version}")
                    old.turn(key, "hello")
                self.bring(name=f"v{version}")

                self.assertEqual(MemoryTurn.objects.filter(session__key=key).count(), 1)

    def test_it_says_what_it_leaves_behind(self):
        with self.old(version=NEWEST) as old:
            old.insert("usage_events", tokens=5)
            old.insert("plugin_data", plugin="p", name="n", value="v")
        left = self.bring()["left"]

        self.assertEqual((left["usage_events"]["rows"], left["plugin_data"]["rows"]), (1, 1))
        self.assertTrue(all(each["reason"] for each in left.values()))


class AgainTests(FolderCase):
    def test_it_brings_nothing_twice(self):
        with self.old(version=NEWEST) as old:
            self.furnish(old)
        self.bring()
        before = self.rows()

        tally = self.bring()

        self.assertEqual(self.rows(), before)
        self.assertEqual({kind["imported"] for kind in tally["kinds"].values()}, {0})

    def test_it_brings_no_override_back_that_has_moved(self):
        """The old key is free again then; a chat that took it would be one nobody has."""
        with self.old() as old:
            old.talk(old.session(KEY), GROUP)
            old.override(KEY, KEY)
        self.bring()
        inspect(who="alice")
        decide(MigrationLog.objects.get(), Approval.APPROVED, who="alice")
        apply_record(MigrationLog.objects.get().pk, who="alice", allows=True)

        tally = self.bring()

        self.assertEqual(tally["kinds"]["active sessions"]["already_there"], 1)
        self.assertEqual([lane.chat.chat_key for lane in Lane.objects.all()], [GROUP])

    def test_it_brings_what_is_new(self):
        with self.old() as old:
            self.furnish(old)
            self.bring()
            mine = self.new_turn()
            old.turn(KEY, "later", chat=GROUP)
            old.session("milky:new")
            old.turn("milky:new", "later still")
            tally = self.bring()

        self.assertEqual(tally["kinds"]["turns"]["imported"], 2)
        self.assertEqual(tally["kinds"]["sessions"]["imported"], 1)
        later = MemoryTurn.objects.get(content="later")
        self.assertGreater(later.pk, mine)
        self.assertEqual(later.session.key, KEY)

    def test_it_does_not_bring_back_what_was_erased(self):
        with self.old() as old:
            self.furnish(old)
        self.bring()
        MemoryTurn.objects.filter(content="hello").delete()
        count = MemoryTurn.objects.count()

        self.bring()

        self.assertEqual(MemoryTurn.objects.count(), count)

    def test_it_takes_no_other_database_under_the_same_name(self):
        with self.old() as old:
            old.session(KEY)
        self.bring()
        with self.old("other.db") as old:
            old.session("milky:999")

        with self.assertRaisesMessage(CommandError, "give it a name of its own with --name"):
            self.bring()
        self.bring(name="other")

        self.assertEqual(Source.objects.count(), 2)

    def test_it_knows_a_database_again_that_had_no_session_at_first(self):
        with self.old() as old:
            self.bring()
            self.furnish(old)
            self.bring()
            tally = self.bring()

        self.assertEqual(tally["kinds"]["turns"]["already_there"], 3)

    def test_it_brings_nothing_twice_when_two_bring_it_at_once(self):
        with self.old() as old:
            old.session(KEY)
            old.many_turns((KEY, "user", "hello", None) for _ in range(2 * BATCH + 1))

        def meanwhile(kind: str, done: int, total: int) -> None:
            if done == BATCH:
                self.bring()

        with self.assertRaisesMessage(AnotherImportError, "is under way"):
            run(self.newest, name="nahida", is_dry=False, progress=meanwhile)

        self.assertEqual(MemoryTurn.objects.count(), 2 * BATCH + 1)

    def test_it_stores_nothing_on_a_dry_run(self):
        with self.old() as old:
            self.furnish(old)
        before = self.rows()

        tally = self.bring("--dry-run")

        self.assertEqual(self.rows(), before)
        self.assertEqual(tally["kinds"]["turns"]["imported"], 3)
        self.assertEqual(self.bring()["kinds"]["turns"]["imported"], 3)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ShownTests(FolderCase):
    def told(self, err: io.StringIO) -> str:
        out = io.StringIO()
        call_command("import_legacy", str(self.newest), stdout=out, stderr=err)
        return out.getvalue()

    def test_it_shows_a_bar_on_a_terminal_and_none_elsewhere(self):
        with self.old() as old:
            self.furnish(old)
        on_terminal, elsewhere = Terminal(), io.StringIO()

        self.told(on_terminal)
        self.told(elsewhere)

        self.assertIn(f"\r[{'#' * 30}] turns", on_terminal.getvalue())
        self.assertIn("3 of 3", on_terminal.getvalue())
        self.assertEqual(elsewhere.getvalue(), "")

    def test_it_ends_with_a_table_and_no_text_that_a_terminal_obeys(self):
        with self.old() as old:
            old.job(KEY, job_id="\x1b[2Jj1", mode="odd")

        told = self.told(io.StringIO())

        self.assertRegex(told, r"jobs +1 +0 +0 +1\n")
        self.assertIn('skipped jobs: its mode "odd" is unknown: \\x1b[2Jj1', told)


class FileTests(FolderCase):
    def test_it_leaves_the_file_as_it_was(self):
        with self.old() as old:
            self.furnish(old)
        before = self.digests()

        self.bring()

        self.assertEqual(self.digests(), before)

    def test_it_sees_what_is_still_in_the_log_of_pending_writes(self):
        with self.old(wal=True) as old:
            self.furnish(old)
            before = self.digests()
            self.assertIn("old.db-wal", before)

            self.bring()

            self.assertEqual(self.digests(), before)
        self.assertEqual(MemoryTurn.objects.count(), 3)

    def test_it_reads_a_folder_that_nobody_may_write_to(self):
        with self.old(wal=True) as old:
            self.furnish(old)
        before = self.digests()
        self.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(self.folder.chmod, stat.S_IRWXU)

        self.bring()

        self.assertEqual(self.digests(), before)

    def test_it_finds_what_is_pending_behind_a_link(self):
        with self.old(wal=True) as old:
            self.furnish(old)
            self.newest = self.path("elsewhere/link.db")
            self.newest.parent.mkdir()
            self.newest.symlink_to(old.path)

            self.bring()

        self.assertEqual(MemoryTurn.objects.count(), 3)

    def test_it_reads_a_copy_while_the_old_bot_goes_on(self):
        scratch = self.path("scratch")
        scratch.mkdir()
        with self.old(wal=True) as old:
            old.session(KEY)
            old.turn(KEY)
            with opened(self.newest, scratch=scratch) as file:
                old.turn(KEY)

                self.assertEqual(file.count("memory_turns"), 1)
                # Even a kill now leaves no copy of somebody's chats behind.
                self.assertEqual(list(scratch.iterdir()), [])

    def test_it_tells_when_the_file_changed_under_its_eyes(self):
        with self.old() as old:
            old.session(KEY)

            with (
                self.assertRaisesMessage(OldFileError, "changed while it was read"),
                opened(self.newest, scratch=self.folder),
            ):
                old.turn(KEY)

    def test_it_leaves_an_index_of_vectors_whose_module_is_missing(self):
        with self.old() as old:
            self.furnish(old)
            old.connection.execute("PRAGMA writable_schema = ON")
            old.connection.execute(
                "INSERT INTO sqlite_master VALUES ('table', 'memory_embedding_vec', 'memory_embedding_vec', 0,"
                " 'CREATE VIRTUAL TABLE memory_embedding_vec USING vec0 (embedding float[2])')"
            )
            old.connection.execute("CREATE TABLE memory_embedding_vec_rowids (rowid INTEGER)")
            old.insert("memory_embedding_vec_rowids", rowid=1)

        left = self.bring()["left"]

        self.assertEqual(left["memory_embedding_vec"]["rows"], 1)
        self.assertEqual(left["memory_item_fts"]["rows"], 0)

    def test_it_refuses_a_file_with_a_damaged_page(self):
        with self.old() as old:
            old.session(KEY)
            for _ in range(3000):
                old.turn(KEY, "hello " * 20)
        raw = bytearray(self.newest.read_bytes())
        middle = len(raw) // 2 // 4096 * 4096
        raw[middle : middle + 2048] = b"\xff" * 2048
        self.newest.write_bytes(raw)

        with self.assertRaisesRegex(CommandError, "is damaged|malformed"):
            self.bring()

        self.assertFalse(Session.objects.exists())

    def test_it_refuses_what_is_no_old_database(self):
        os.mkfifo(self.path("pipe.db"))
        whole = self.path("whole.db")
        with self.old("whole.db") as old:
            self.furnish(old)
        cases = {
            "missing.db": "cannot be read: No such file",
            ".": "is a directory",
            "pipe.db": "is no file",
            "empty.db": "is empty",
            "text.db": "is no SQLite database, or an encrypted one",
            "cut.db": "is cut off",
            "other.db": "is not of the old bot",
        }
        self.path("empty.db").write_bytes(b"")
        self.path("text.db").write_text("hello " * 100)
        self.path("cut.db").write_bytes(whole.read_bytes()[:6000])
        with self.old("other.db") as old:
            old.connection.execute("DROP TABLE memory_turns")

        for name, words in cases.items():
            with self.subTest(name), self.assertRaisesMessage(CommandError, words):
                call_command("import_legacy", str(self.path(name)), stdout=io.StringIO())

        self.assertFalse(Session.objects.exists())
