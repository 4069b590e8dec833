from urllib.parse import quote

from django.utils import timezone

from sessions_app.models import Session
from sessions_app.routing import start_session
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, chat_of, lane_of, old_session, say


def listed(response) -> list[str]:
    assert response.status_code == 200, response.content
    return [row["key"] for row in response.json()["items"]]


class ListSessionsTest(GatewayTestCase):
    def test_it_lists_every_session_once_over_all_pages(self) -> None:
        """B022: the base session and twelve more, in a stable order."""
        lane = lane_of(ALICE)
        for _ in range(12):
            start_session(lane)
        key, found, cursor = self.key(), [], ""

        for _ in range(10):
            page = self.get(
                "/api/sessions", key=key, limit="5", **({"cursor": cursor} if cursor else {})
            ).json()
            found += [row["key"] for row in page["items"]]
            if not (cursor := page["next_cursor"]):
                break

        newest_first = Session.objects.order_by("-last_active_at", "-pk")
        assert found == [session.key for session in newest_first]
        assert len(found) == 13

    def test_it_pages_through_sessions_of_the_same_instant(self) -> None:
        now = timezone.now()
        lane = lane_of(ALICE)
        for _ in range(4):
            start_session(lane)
        Session.objects.update(last_active_at=now)
        key = self.key()

        first = self.get("/api/sessions", key=key, limit="2").json()
        second = self.get("/api/sessions", key=key, limit="2", cursor=first["next_cursor"]).json()
        third = self.get("/api/sessions", key=key, limit="2", cursor=second["next_cursor"]).json()

        keys = [row["key"] for page in (first, second, third) for row in page["items"]]
        assert len(keys) == len(set(keys)) == 5
        assert third["next_cursor"] is None

    def test_it_filters_by_channel_id_chat_and_text(self) -> None:
        for address in (ALICE, GROUP, "milky-alt:private:10001", "telegram:private:7"):
            lane_of(address)
        Session.objects.filter(key=GROUP).update(title="黄山 trip")
        key = self.key()

        def find(**query: str) -> set[str]:
            return set(listed(self.get("/api/sessions", key=key, **query)))

        assert find(channel="milky") == {ALICE, GROUP}
        assert find(channel="milky", id="10001") == {ALICE, GROUP}
        assert find(id="10001") == {ALICE, GROUP, "milky-alt:private:10001"}
        assert find(chat=GROUP) == {GROUP}
        assert listed(self.get(f"/api/sessions?key={ALICE}", key=key)) == [ALICE]
        assert find(q="黄山") == {GROUP}
        assert find(q="100%") == set()

    def test_it_filters_by_kind_of_key(self) -> None:
        lane = lane_of(ALICE)
        derived = start_session(lane).key
        for text in ("milky:10001", "milky:10001:deadbeef", "heartbeat"):
            old_session(text)
        key = self.key()

        def find(kind: str) -> list[str]:
            rows = self.get("/api/sessions", key=key, session_key_kind=kind).json()["items"]
            assert all(row["session_key_kind"] == kind for row in rows)
            return [row["key"] for row in rows]

        assert find("typed") == [ALICE]
        assert find("typed-derived") == [derived]
        assert find("legacy") == ["milky:10001"]
        assert find("legacy-derived") == ["milky:10001:deadbeef"]
        assert find("invalid") == ["heartbeat"]
        assert self.get("/api/sessions", key=key, session_key_kind="any").status_code == 400

    def test_it_fills_a_page_of_one_kind_among_many_others(self) -> None:
        for number in range(5):
            old_session(f"milky:{number}:deadbeef")
            old_session(f"milky:{number}")
        key = self.key()

        first = self.get("/api/sessions", key=key, session_key_kind="legacy", limit="3").json()
        rest = self.get(
            "/api/sessions",
            key=key,
            session_key_kind="legacy",
            limit="3",
            cursor=first["next_cursor"],
        ).json()

        assert len(first["items"]) == 3
        assert len(rest["items"]) == 2
        assert rest["next_cursor"] is None

    def test_it_refuses_a_cursor_that_is_none_of_ours(self) -> None:
        key = self.key()

        for cursor in ("x", "bnVsbA", "WzFd", "WzEsICIyMDMxIl0", "\x00", "é"):
            response = self.get("/api/sessions", key=key, cursor=cursor)
            assert response.status_code == 400, cursor

    def test_it_takes_odd_characters_in_a_query(self) -> None:
        """B110: the same on both databases, never 500."""
        key = self.key()

        assert self.get("/api/sessions", key=key, q="\x00").status_code == 200
        assert self.get("/api/sessions", key=key, channel="\x00").status_code == 400
        assert self.get("/api/sessions/%00", key=key).status_code == 404
        assert self.get("/api/sessions/%00/turns", key=key).status_code == 404
        assert self.get("/api/sessions/%FF%FE", key=key).status_code == 404


class ShowSessionTest(GatewayTestCase):
    def test_it_finds_each_key_exactly_as_listed(self) -> None:
        """B003: underscores, slashes, percent signs, blanks and line ends included."""
        for address in ("test:private:user_name_2", "test:group:a%3Ab", "test:group:a b/c?d#e"):
            lane_of(address)
        for text in ("old:a/b", "old:50%", "old:a%3Ab", "old: x \n y", "heart beat/", "/", "a//b"):
            old_session(text)
        key = self.key()

        for text in listed(self.get("/api/sessions", key=key)):
            found = self.get(f"/api/sessions/{quote(text, safe='')}", key=key)
            turns = self.get(f"/api/sessions/{quote(text, safe='')}/turns", key=key)
            assert found.json()["key"] == text
            assert turns.json()["session_key"] == text

    def test_it_reads_another_spelling_of_a_typed_key(self) -> None:
        lane_of("test:group:a%3Ab")

        found = self.get(f"/api/sessions/{quote('test:group:a%3ab', safe='')}", key=self.key())

        assert found.json()["key"] == "test:group:a%3Ab"

    def test_it_never_decodes_an_old_key(self) -> None:
        old_session("old:a%41")
        old_session("old:aA")
        key = self.key()

        assert self.get("/api/sessions/old%3Aa%2541", key=key).json()["key"] == "old:a%41"
        assert self.get("/api/sessions/old%3AaA", key=key).json()["key"] == "old:aA"
        assert self.get("/api/sessions/old%3Aa%2561", key=key).status_code == 404

    def test_it_shows_where_a_session_belongs(self) -> None:
        lane = lane_of("tg:group:-100:topic:42")
        start_session(lane)

        row = self.get("/api/sessions/tg:group:-100:topic:42", key=self.key()).json()

        assert row["chat"] == "tg:group:-100"
        assert (row["channel"], row["target_type"], row["target_id"]) == ("tg", "group", "-100")
        assert row["thread"] == "42"
        assert row["is_active"] is False
        assert row["imported"] is False

    def test_it_renames_a_session(self) -> None:
        lane_of(ALICE)

        row = self.patch(f"/api/sessions/{ALICE}", {"title": "a\x00b \ud83d"}, key=self.key())

        assert row.status_code == 200
        assert row.json()["title"] == "ab \ufffd"
        assert Session.objects.get().title == "ab \ufffd"

    def test_it_needs_a_scope_to_rename(self) -> None:
        lane_of(ALICE)
        key = self.key("sessions:read")

        assert self.patch(f"/api/sessions/{ALICE}", {"title": "x"}, key=key).status_code == 403


class TurnsTest(GatewayTestCase):
    def test_it_pages_by_id_in_both_orders(self) -> None:
        turns = [say(ALICE, f"line {n}").pk for n in range(5)]
        key, path = self.key(), f"/api/sessions/{ALICE}/turns"

        newest = self.get(path, key=key, limit="3").json()
        say(ALICE, "one more meanwhile")
        older = self.get(path, key=key, limit="3", cursor=newest["next_cursor"]).json()
        oldest = self.get(path, key=key, limit="2", order="oldest").json()

        assert newest["session_key_kind"] == "typed"
        assert [turn["id"] for turn in newest["items"]] == turns[:1:-1]
        assert [turn["id"] for turn in older["items"]] == turns[1::-1]
        assert older["next_cursor"] is None
        assert [turn["text"] for turn in oldest["items"]] == ["line 0", "line 1"]

    def test_it_has_fifty_turns_a_page(self) -> None:
        for n in range(51):
            say(ALICE, f"{n}")

        page = self.get(f"/api/sessions/{ALICE}/turns", key=self.key()).json()

        assert len(page["items"]) == 50

    def test_it_needs_few_queries(self) -> None:
        say(ALICE, "hello")
        key = self.key()
        self.get("/api/sessions", key=key)

        with self.assertNumQueries(4):  # key, session, turns, attachments
            self.get(f"/api/sessions/{ALICE}/turns", key=key)


class IsolationTest(GatewayTestCase):
    """B021, B141: what a key does not reach is not there."""

    def test_it_shows_a_limited_key_only_its_chats(self) -> None:
        say(ALICE, "my salary")
        Session.objects.update(title="salary")
        say(GROUP, "hello")
        old_session("milky:10001")
        key = self.key(chats=[chat_of(GROUP)])

        assert listed(self.get("/api/sessions", key=key)) == [GROUP]
        assert listed(self.get("/api/sessions", key=key, q="salary")) == []
        assert listed(self.get("/api/sessions", key=key, chat=ALICE)) == []
        assert listed(self.get("/api/chats", key=key)) == [GROUP]

    def test_it_answers_alike_for_a_hidden_and_a_missing_row(self) -> None:
        say(ALICE, "my salary")
        key = self.key(chats=[chat_of(GROUP)])

        for path in ("/api/sessions/{}", "/api/sessions/{}/turns", "/api/chats/{}"):
            hidden = self.get(path.format(ALICE), key=key)
            missing = self.get(path.format("milky:private:99999"), key=key)
            assert hidden.status_code == missing.status_code == 404
            assert hidden.content.replace(b"10001", b"99999") == missing.content

    def test_it_does_not_change_what_it_does_not_reach(self) -> None:
        say(ALICE, "my salary")
        key = self.key(chats=[chat_of(GROUP)])

        renamed = self.patch(f"/api/sessions/{ALICE}", {"title": "x"}, key=key)
        blocked = self.patch(f"/api/chats/{ALICE}", {"access": "blocked"}, key=key)

        assert (renamed.status_code, blocked.status_code) == (404, 404)
        assert chat_of(ALICE).access == "allowed"
