"""One open connection for events."""

from queue import Empty, SimpleQueue

LOOK_EVERY_S = 0.01


class Stream:
    """One open stream of events; a silent one stays open and gets nothing more."""

    def __init__(self) -> None:
        self.is_silent = False
        self.ends_cleanly = False
        self._pieces: SimpleQueue[bytes | None] = SimpleQueue()

    def put(self, piece: bytes) -> None:
        """Send it in two halves, wherever that cuts."""
        if not self.is_silent:
            half = len(piece) // 2
            self._pieces.put(piece[:half])
            self._pieces.put(piece[half:])

    def end(self) -> None:
        self._pieces.put(None)

    def next_piece(self) -> bytes | None:
        """Return the next piece, b"" if there is none yet, None at the end."""
        try:
            return self._pieces.get(timeout=LOOK_EVERY_S)
        except Empty:
            return b""
