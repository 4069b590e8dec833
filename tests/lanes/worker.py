"""A worker in a process of its own, that works on one lane and waits at one step to be killed."""

import os
import sys

import django

import tests.environment  # noqa: F401 -- before Django reads its settings

KEPT = {name: os.environ[name] for name in ("LANE", "WHERE", "DATABASE")}


def main() -> None:
    django.setup()
    from django.db import connection

    connection.settings_dict["NAME"] = KEPT["DATABASE"]
    from nahida.agent import turns
    from tests.fakes.model import ScriptedModel

    def think(messages):
        if KEPT["WHERE"] == "model":
            wait_for_death("model")
        return "never to be heard"

    def stop_in_commit(execute, sql, params, many, context):
        if KEPT["WHERE"] == "commit" and sql.startswith('INSERT INTO "channels_app_delivery"'):
            wait_for_death("commit")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(stop_in_commit):
        turns.run_lane(int(KEPT["LANE"]), model_for=lambda chat: ScriptedModel(think))


def wait_for_death(where: str) -> None:
    print(where, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
