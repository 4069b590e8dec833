"""The tools that a turn may use, one file a family."""

from collections.abc import Sequence

from nahida.agent.tools.base import Tool
from nahida.agent.tools.message import MESSAGE

TOOLS: Sequence[Tool] = (MESSAGE,)
