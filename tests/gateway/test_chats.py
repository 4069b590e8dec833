from sessions_app.models import Chat
from tests.gateway.cast import ALICE, GROUP, GatewayTestCase, chat_of


class ChatsTest(GatewayTestCase):
    def change(self, key: str, **changes: object):
        return self.patch(f"/api/chats/{GROUP}", changes, key=key)

    def test_it_lists_and_filters(self) -> None:
        for address in (ALICE, GROUP, "telegram:group:-100"):
            chat_of(address)
        key = self.key("chats:read")

        def find(**query: str) -> list[str]:
            return [row["key"] for row in self.get("/api/chats", key=key, **query).json()["items"]]

        assert find() == ["telegram:group:-100", GROUP, ALICE]
        assert find(channel="milky", target_type="group") == [GROUP]
        assert find(id="10001") == [GROUP, ALICE]
        assert find(access="blocked") == []
        assert find(q="gram") == ["telegram:group:-100"]

    def test_it_pages(self) -> None:
        for number in range(5):
            chat_of(f"milky:group:{number}")
        key = self.key("chats:read")

        first = self.get("/api/chats", key=key, limit="3").json()
        rest = self.get("/api/chats", key=key, limit="3", cursor=first["next_cursor"]).json()

        keys = [row["key"] for row in first["items"] + rest["items"]]
        assert keys == [f"milky:group:{number}" for number in (4, 3, 2, 1, 0)]
        assert rest["next_cursor"] is None

    def test_it_changes_what_is_named_and_nothing_else(self) -> None:
        chat_of(GROUP)
        Chat.objects.update(title="kept")

        response = self.change(
            self.key("chats:write"),
            access="blocked",
            answer_policy="observe",
            time_zone="Asia/Shanghai",
            model="other",
        )

        chat = Chat.objects.get()
        assert response.status_code == 200, response.content
        assert response.json()["access"] == "blocked"
        assert (chat.access, chat.answer_policy, chat.time_zone, chat.model, chat.title) == (
            "blocked",
            "observe",
            "Asia/Shanghai",
            "other",
            "kept",
        )

    def test_it_refuses_values_that_do_not_exist(self) -> None:
        chat_of(GROUP)
        key = self.key("chats:write")

        for changes in (
            {"access": "maybe"},
            {"access": None},
            {"answer_policy": "zzz"},
            {"time_zone": "Mars/Olympus"},
            {"time_zone": "../../etc/passwd"},
            {"model": "gpt-99"},
            {"chat_key": "milky:group:2"},
        ):
            assert self.change(key, **changes).status_code == 400, changes

    def test_it_takes_a_scope_of_its_own_to_make_an_owner(self) -> None:
        chat_of(GROUP)

        refused = self.change(self.key("chats:write"), is_owner=True)
        accepted = self.change(self.key("chats:write", "chats:owner"), is_owner=True)

        assert refused.status_code == 403
        assert '"chats:owner"' in refused.json()["detail"]
        assert accepted.json()["is_owner"] is True

    def test_it_does_not_change_a_chat_that_was_merged(self) -> None:
        chat = chat_of(GROUP)
        chat.merged_into = chat_of("milky:group:20002")
        chat.save(update_fields=["merged_into"])

        response = self.change(self.key(), title="x")

        assert response.status_code == 409
        assert "milky:group:20002" in response.json()["detail"]
        assert self.get(f"/api/chats/{GROUP}", key=self.key()).json()["merged_into"] == (
            "milky:group:20002"
        )

    def test_it_forgets_the_pairing_code_of_a_decided_chat(self) -> None:
        chat_of(GROUP)
        Chat.objects.update(access="pending", pairing_code="ABCDEFGH")

        shown = self.get(f"/api/chats/{GROUP}", key=self.key())
        self.change(self.key(), access="allowed")

        assert b"ABCDEFGH" not in shown.content
        assert Chat.objects.get().pairing_code == ""
