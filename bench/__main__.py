"""The command line of bin/bench. Each broker is tried in a process of its own, as Django has one database each."""

import argparse
import signal
import subprocess
import sys

from bench import chaos, memory, migration, turns
from bench.site import BROKERS, WIRES, Broker, MissingError


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # tidies up first
    options = parse(sys.argv[1:])
    if options.broker is None:
        return run_each_broker(options.together)
    try:
        return int(not act(options, options.broker))
    except MissingError as error:
        print(f"bin/bench: {error}", file=sys.stderr)
        return 3


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench")
    commands = parser.add_subparsers(dest="command", required=True)
    siege = commands.add_parser("chaos", help="kill -9 of every process in turn")
    siege.add_argument("--rounds", type=int, default=200)
    siege.add_argument("--seed", type=int, default=1)
    siege.add_argument("--wire", choices=WIRES, default="plain", help="how people write")
    siege.set_defaults(together=True)
    pace = commands.add_parser("turns", help="messages and turns per second, latency, memory")
    pace.add_argument("--repeats", type=int, default=3)
    pace.set_defaults(together=False)  # they would measure each other
    move = commands.add_parser("migration", help="import, inspect and apply an old database")
    move.add_argument("--turns", type=int, default=1_000_000)
    move.add_argument("--items", type=int, default=100_000)
    move.set_defaults(together=False)
    mind = commands.add_parser("memory", help="recall, transcript pages, size of the index")
    mind.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    mind.add_argument("--turns", type=int, default=1_000_000)
    mind.set_defaults(together=False)
    for command in (siege, pace, move, mind):
        command.add_argument("--broker", choices=BROKERS, help="only this one")
    return parser.parse_args(arguments)


def act(options: argparse.Namespace, broker: Broker) -> bool:
    if options.command == "chaos":
        return chaos.run(broker, wire=options.wire, rounds=options.rounds, seed=options.seed)
    if options.command == "migration":
        return migration.run(broker, turns=options.turns, items=options.items)
    if options.command == "memory":
        return memory.run(broker, items=options.items, turns=options.turns)
    return turns.run(broker, repeats=options.repeats)


def run_each_broker(together: bool) -> int:
    """Run our own command once a broker; return the worst exit code."""
    command = [sys.executable, "-m", "bench", *sys.argv[1:]]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for broker in BROKERS:
            running.append(subprocess.Popen([*command, "--broker", broker]))
            if not together:
                running[-1].wait()
        return max(process.wait() for process in running)
    finally:
        for process in running:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
