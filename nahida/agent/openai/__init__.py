"""Models of OpenAI-compatible servers; the facts of the wire are in protocols/llm.md."""

from nahida.agent.openai.client import OpenAIModel

__all__ = ["OpenAIModel"]
