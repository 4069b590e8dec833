"""One round of the ticker: wake what is due, end what nobody works on (DESIGN 5, R6). Any number may run."""

from channels_app import outbox
from memory_app import embedding
from nahida import queue
from nahida.ops import operations
from sessions_app import lanes

MOST_AT_ONCE = 200


def tick() -> None:
    outbox.sweep()
    for lane_id in lanes.wake_due(MOST_AT_ONCE):
        queue.wake(queue.RUN_LANE, lane_id)
    for delivery_id in outbox.wake_due(MOST_AT_ONCE):
        queue.wake(queue.DELIVER, delivery_id)
    for operation_id in operations.wake_due(MOST_AT_ONCE):
        queue.wake(queue.RUN_OPERATION, operation_id)
    for index_id in embedding.wake_due():
        queue.wake(queue.REFRESH_EMBEDDINGS, index_id)
