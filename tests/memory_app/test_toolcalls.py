"""What is kept of a tool's result."""

from django.test import TestCase

from memory_app import toolcalls
from memory_app.models import ToolCall, TurnKind
from memory_app.turns import NewTurn, append_turn
from sessions_app import lanes
from tests.memory_app.cast import ALICE

DOT_ENV = """OPENAI_API_KEY=sk-proj-abcDEF123456ghiJKL
DB_PASSWORD=hunter2
GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a
DATABASE_URL=postgres://u:p@ss@h/db
PORT=8000"""


class ToolResultTests(TestCase):
    def test_it_masks_secrets_that_a_tool_read(self):
        """Nobody typed them: they stood in a file."""
        turn = append_turn(ALICE, NewTurn(kind=TurnKind.MESSAGE, content="read .env"))
        assert turn.lane is not None
        token = lanes.claim(turn.lane.pk)
        assert token is not None

        for number, run in enumerate((toolcalls.run_inside, toolcalls.run_outside)):
            shown = run(
                turn.lane.pk,
                token,
                batch=turn.pk,
                name="read",
                call=f"call {number}",
                act=lambda: DOT_ENV,
            )
            kept = ToolCall.objects.get(digest=f"call {number}").result
            for secret in ("abcDEF", "hunter2", "16C7e42F", "p@ss"):
                self.assertNotIn(secret, f"{kept} {shown}")
            self.assertIn("PORT=8000", f"{kept}")
