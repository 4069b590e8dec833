"""The site's settings, but the queue says which of its processes is which (bench/processes.py reads it)."""

from nahida.settings import *  # noqa: F403
from nahida.settings import LOGGING

LOGGING["loggers"]["django-q"] = {"level": "INFO"}  # type: ignore[index]
