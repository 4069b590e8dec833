"""How the serving process ends, and how its loops survive what fails."""

import asyncio
import socket
import unittest

import pytest

from nahida.ops.ports import PortError, bound_socket
from nahida.ops.server import again_and_again
from nahida.ops.stopping import Stopping


class StoppingTests(unittest.IsolatedAsyncioTestCase):
    async def test_it_wakes_those_who_sleep(self) -> None:
        stopping = Stopping()
        sleeper = asyncio.create_task(stopping.sleep(60))
        await asyncio.sleep(0)

        stopping.set()

        assert await sleeper is True

    async def test_it_lets_nobody_sleep_after_the_end(self) -> None:
        stopping = Stopping()
        stopping.set()

        assert await stopping.sleep(60) is True

    async def test_it_says_that_the_end_has_not_come(self) -> None:
        assert await Stopping().sleep(0.001) is False

    async def test_it_can_be_used_in_loop_after_loop(self) -> None:
        """Tests, and servers of other kinds, bring loops of their own."""
        stopping = Stopping()
        for _ in range(2):
            await asyncio.to_thread(asyncio.run, stopping.sleep(0.001))

        assert not stopping.is_set()


class LoopTests(unittest.IsolatedAsyncioTestCase):
    async def test_it_goes_on_after_a_failure(self) -> None:
        stopping = Stopping()
        rounds = 0

        async def act() -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 3:
                stopping.set()
            raise ValueError("a bad round")

        with self.assertLogs("nahida.ops.server", "ERROR") as logs:
            await again_and_again("the ticker", act, pause_s=0.001, stopping=stopping)

        assert rounds == 3
        assert "the ticker failed, 3 in a row" in logs.output[-1]


def test_it_tells_a_taken_port_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(PortError) as caught:
            bound_socket("127.0.0.1", port, way_out="--port")

    told = f"port {port} of 127.0.0.1 is taken: free it, or choose another with --port"
    assert str(caught.value) == told


def test_it_tells_a_port_that_cannot_be() -> None:
    with pytest.raises(PortError, match=r"port 99999 of .* cannot be listened on"):
        bound_socket("127.0.0.1", 99_999, way_out="--port")
