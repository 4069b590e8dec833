#!/usr/bin/env python
"""Django's commands, and a configuration mistake told in plain lines."""

import os
import sys

# How settings.py keeps database connections depends on it; nahida/ops/management has the commands.
ROLES = {"serve": "web", "listen": "web", "tick": "web", "qcluster": "worker"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nahida.settings")
    os.environ.setdefault("NAHIDA_ROLE", ROLES.get("".join(sys.argv[1:2]), ""))
    from django.core.management import execute_from_command_line

    from nahida.config import ConfigError

    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
