"""Decide in the terminal."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from nahida.legacy.proposals import MANUAL_REVIEW
from nahida.legacy.review import ANSWERS, review

HELP = "ask about each proposal in the terminal; applies nothing"


def add_arguments(parser: ArgumentParser) -> None:
    """It needs to know nothing more."""


def run(command: BaseCommand, options: dict[str, Any]) -> None:
    command.stdout.write(ANSWERS)
    answers = review(who=options["who"], ask=input, say=command.stdout.write)
    left = answers.pop(MANUAL_REVIEW)
    for answer, number in sorted(answers.items()):
        command.stdout.write(f"{answer}: {number}")
    command.stdout.write(
        f"{MANUAL_REVIEW}: {left}, which stay pending; see them in the plan or in the admin"
    )
