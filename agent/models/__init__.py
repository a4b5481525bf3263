"""Models: the protocol of models, their clients, and the conversion of answers to calls."""

from typing import TYPE_CHECKING

from agent.vocabulary import from_modules

if TYPE_CHECKING:
    from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest
    from agent.models.openai_model import OpenAIModel, model_from_name
    from agent.models.scripted import ScriptedModel, answer, call, delay, fail, load_script
    from agent.tools.schemas import ToolSchema

__all__ = [
    "Answer",
    "Delta",
    "Model",
    "ModelError",
    "ModelRequest",
    "OpenAIModel",
    "ScriptedModel",
    "ToolSchema",
    "answer",
    "call",
    "delay",
    "fail",
    "load_script",
    "model_from_name",
]

__getattr__, __dir__ = from_modules(
    "agent.models",
    {
        "model": "Answer Delta Model ModelError ModelRequest",
        "openai_model": "OpenAIModel model_from_name",
        "scripted": "ScriptedModel answer call delay fail load_script",
        "agent.tools.schemas": "ToolSchema",
    },
)
