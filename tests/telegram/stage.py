"""The cast: a fake Telegram with one bot, and Lin who talks to it; Mo is somebody else."""

from unittest import IsolatedAsyncioTestCase, TestCase

from tests.fakes.telegram import TelegramServer, user

LIN = user(5550001, "Lin", username="lin_example")
MO = user(5550002, "Mo")


class TelegramCase(TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.enterContext(TelegramServer(loopback_webhooks=True))
        self.bot = self.server.add_bot()
        self.lin = self.bot.private(LIN)


class AsyncTelegramCase(IsolatedAsyncioTestCase, TelegramCase):
    pass
