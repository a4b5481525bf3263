"""Which model a name on the command line or in a configuration means."""

from collections.abc import Mapping

from agent.models.model import Model, ModelError
from agent.models.openai_model import OpenAIModel
from agent.models.script_file import load_script
from agent.models.wires import Api

__all__ = ["model_from_name"]


def model_from_name(name: str, environ: Mapping[str, str], *, api: Api = "chat") -> Model:
    """Return the model that `name` means.

    `script:FILE` is a scripted model; `http://host/v1` or `http://host/v1#model` is a model on that server (with
    OPENAI_API_KEY where it is set); everything else is a model of OPENAI_BASE_URL with OPENAI_API_KEY, which only
    OpenAI's own server needs. `api` is the format that servers are spoken to in. Raises `ModelError` for a name, key or
    address that is missing or cannot be one, `ScriptError` for a bad script.
    """
    name = name.strip()
    if not name:
        raise ModelError("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    if name == "script:":
        raise ModelError("'script:' names no file; write script:FILE.yaml")
    if name.startswith("script:"):
        return load_script(name.removeprefix("script:"))
    if "://" in name:
        url, _, model = name.partition("#")
        return OpenAIModel(model or "default", api=api, base_url=url, api_key=environ.get("OPENAI_API_KEY"))
    return OpenAIModel.from_environment(name, environ, api=api)
