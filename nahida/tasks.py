"""Every entry point of the queue. Each takes a primary key, claims its row or finds nothing to do, and returns None."""

from nahida import queue
from nahida.agent import delivery, embeddings, turns
from nahida.agent.model import chain_for
from nahida.gateway import idempotency, oneoff
from nahida.legacy import long_work
from nahida.ops import heartbeat, operations, retention, ticker


def run_lane(lane_id: int) -> None:
    turns.run_lane(lane_id, model_for=lambda chat: chain_for(chat.model))


def deliver(delivery_id: int) -> None:
    delivery.deliver(delivery_id)


def run_operation(operation_id: int) -> None:
    operations.run(operation_id, works=long_work.WORKS)


def refresh_embeddings(index_id: int) -> None:
    if embeddings.refresh(index_id):
        queue.wake(queue.REFRESH_EMBEDDINGS, index_id)


def beat() -> None:
    heartbeat.beat("qcluster")


def sweep() -> None:
    """Once a minute: say that the workers live, do the ticker's round in case no ticker runs, and clear away."""
    beat()
    ticker.tick()
    oneoff.erase_old()
    idempotency.forget_old()
    retention.forget_old()
    embeddings.keep()
