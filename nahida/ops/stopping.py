"""The end of this process, for whoever streams or loops inside it."""

import asyncio


class Stopping:
    """Whether this process is to stop. Streams end on it, whatever event loop they run in."""

    def __init__(self) -> None:
        self._set = False
        self._sleepers: set[asyncio.Event] = set()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        """Wake every sleeper of this thread's event loop."""
        self._set = True
        for sleeper in self._sleepers:
            sleeper.set()

    def clear(self) -> None:
        self._set = False

    async def sleep(self, seconds: float | None = None) -> bool:
        """Sleep, but not beyond the stop; return whether it has come."""
        if self._set:
            return True
        sleeper = asyncio.Event()
        self._sleepers.add(sleeper)
        try:
            async with asyncio.timeout(seconds):
                await sleeper.wait()
        except TimeoutError:
            pass
        finally:
            self._sleepers.discard(sleeper)
        return self._set

    async def wait(self) -> None:
        await self.sleep()


stopping = Stopping()
