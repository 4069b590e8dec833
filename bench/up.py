"""What `manage.py up` keeps running, under a less patient supervisor: restarts need not be rare here."""

import os

import django


def main() -> None:
    django.setup()

    from nahida.ops.programs import programs
    from nahida.ops.supervisor import Supervisor, Timing

    timing = Timing(stop=3.0, steady=5.0, check=1.0)
    port = int(os.environ["NAHIDA_PORT"])
    Supervisor(list(programs(host="127.0.0.1", port=port)), timing=timing).run()


if __name__ == "__main__":
    main()
