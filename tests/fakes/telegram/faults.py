"""What goes wrong, or has to wait, because a test says so."""

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.fakes.telegram.answers import Answer

PATIENCE_S = 30.0  # a test that forgot to let a call go on fails instead of hanging


class Hold:
    """A call that waits until the test lets it go on; leaving the `with` does."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE_S), "the held call never came"

    def release(self) -> None:
        self._released.set()

    def stop_here(self) -> None:
        self._reached.set()
        self._released.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


@dataclass(slots=True)
class Fault:
    """What meets the next `times` calls of a method, in one chat or in all. `after`: once the call has had its effect."""

    method: str
    times: int = 1
    chat_id: int | None = None
    after: bool = False
    answer: Answer | None = None
    hold: Hold | None = None

    def meet(self) -> Answer | None:
        """Return what is answered instead of the truth, if anything."""
        if self.hold is not None:
            self.hold.stop_here()
        return self.answer

    def concerns(self, method: str, chat_id: int | None) -> bool:
        same_chat = self.chat_id is None or self.chat_id == chat_id
        return self.times > 0 and self.method.lower() == method.lower() and same_chat


class Faults:
    """The faults that are still to come, first planned first."""

    def __init__(self) -> None:
        self._planned: list[Fault] = []

    def plan(self, fault: Fault) -> None:
        self._planned.append(fault)

    def take(self, method: str, chat_id: int | None) -> Fault | None:
        for fault in self._planned:
            if fault.concerns(method, chat_id):
                fault.times -= 1
                return fault
        return None

    def release_all(self) -> None:
        for fault in self._planned:
            if fault.hold is not None:
                fault.hold.release()
