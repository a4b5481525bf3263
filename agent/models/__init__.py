"""Models: who answers the loop, and how an answer becomes calls.

Modules in reading order; each needs only those above it.

- `model`: what the loop asks of a model: one request, one answer or one error
- `surrogates`: text that can be stored and sent. `weight`: how much memory it takes
- `prices`: how many tokens a text has, about, and what they cost
- `arguments`: which argument texts are one JSON object
- `calls`: from what the model wrote to calls that the loop can carry
- `scripted`: a model that says what a script tells it to
- `yaml_nodes`, `script_file`: the same as a YAML file
- `json_values`: reading JSON whose shape nobody guarantees. `nesting`: whether it is closed by now
- `reported`: errors that a server reports within a stream
- `chunks`, `streamed_calls`, `assembly`: from the chunks of a chat-completions stream to one whole answer
- `response_events`, `streamed_items`, `response_assembly`: the same for the responses API
- `carrying`: what of images and reasoning goes out. `chat`, `responses`: a request in each of the two formats
- `wires`: the two formats side by side
- `failures`: what went wrong with a request, in one sentence
- `event_stream`, `http_stream`: from bytes to chunks
- `server`: where the server is, which key it wants, and one POST
- `openai_model`: a model behind an OpenAI-compatible server
- `names`: which model a name means
"""

from typing import TYPE_CHECKING

from agent.models.calls import read_calls, with_ids
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest, ToolSchema
from agent.models.scripted import ScriptedAnswer, ScriptedCall, ScriptedModel, Step, answer, call, delay, fail
from agent.vocabulary.lazy import from_modules

if TYPE_CHECKING:
    from agent.models.assembly import Assembly, assemble
    from agent.models.carrying import Carrying
    from agent.models.chat import render_messages, render_tools
    from agent.models.names import model_from_name
    from agent.models.openai_model import OpenAIModel
    from agent.models.script_file import ScriptError, load_script

__all__ = [
    "Answer",
    "Assembly",
    "Carrying",
    "Delta",
    "Model",
    "ModelError",
    "ModelRequest",
    "OpenAIModel",
    "ScriptError",
    "ScriptedAnswer",
    "ScriptedCall",
    "ScriptedModel",
    "Step",
    "ToolSchema",
    "answer",
    "assemble",
    "call",
    "delay",
    "fail",
    "load_script",
    "model_from_name",
    "read_calls",
    "render_messages",
    "render_tools",
    "with_ids",
]

__getattr__ = from_modules(  # what a server or a file needs: 20 ms, which a scripted run does without
    "agent.models",
    {
        "Assembly": "assembly",
        "Carrying": "carrying",
        "OpenAIModel": "openai_model",
        "ScriptError": "script_file",
        "assemble": "assembly",
        "load_script": "script_file",
        "model_from_name": "names",
        "render_messages": "chat",
        "render_tools": "chat",
    },
)
