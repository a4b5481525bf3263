"""Real models of an experiment: the model of each role, with server, key and parameters.

    {model: gpt-5-mini, url_from: AGENT_URL, key_from: AGENT_KEY, api: responses, parameters: {temperature: 0.7}}

Kept files name environment variables, never their values.
"""

import json
import re
from collections.abc import Mapping
from importlib import import_module
from typing import cast

from attrs import frozen

from agent.lab.experiments.own_protocols import own_object
from agent.models.model import Model, ModelError, Price
from agent.models.openai_model import Api, OpenAIModel, model_from_name, split_options

MODEL_ROLES = ("agent", "trusted", "editor", "auditor")
"""The roles to which a plan may give a model; monitors have models of their own."""


INSPECT = "inspect:"
"""Prefix of models that are called through Inspect's model API."""

ADDRESS = "_BASE_URL"
"""The end of the names of variables that hold an address."""

SCRIPT = "script:"
LIKE_A_FILE = re.compile(r"^(?!script:|inspect:)(.*\.(py|ya?ml)\b|[\w.]+:[A-Z][a-z])")


@frozen
class ModelPlan:
    """A model of a plan: a name as for `bpagent run --model`, or FILE.py:NAME, and its settings.

    url: the server's address; url_from, key_from: the environment variables of address and key, instead of
    OPENAI_BASE_URL and OPENAI_API_KEY. parameters: a JSON object, sent unchanged with every request. price: of tokens.
    timeout: the longest silence of its server, in seconds; no answer depends on it. system: a system prompt of its own,
    before that of the loop.
    """

    model: str
    api: Api = "chat"
    url: str = ""
    url_from: str = ""
    key_from: str = ""
    parameters: str = "{}"
    price: Price | None = None
    timeout: float = 600.0
    system: str = ""

    @property
    def is_own(self) -> bool:
        """True if the name looks like a file or a class of the user's: FILE.py:NAME, module:Name."""
        return "://" not in self.model and LIKE_A_FILE.search(self.model) is not None

    @property
    def file(self) -> str:
        """The script or Python file of the model; empty for one on a server."""
        return self.model.removeprefix(SCRIPT) if self.is_own or self.model.startswith(SCRIPT) else ""

    def address(self, environ: Mapping[str, str]) -> str:
        """Return the address of the server, read from its variable if it is in one; of Inspect's, all variables."""
        if self.model.startswith(INSPECT):
            return str(sorted(item for item in environ.items() if item[0].endswith(ADDRESS)))
        named = split_options(self.model)[0].partition("#")[0] if "://" in self.model else self.url
        return named or environ.get(self.url_from or "OPENAI_BASE_URL", "")

    def asked_with(self, environ: Mapping[str, str]) -> dict[str, object]:
        """Return the parameters that an answer depends on, beside the conversation and the model's name."""
        return {"api": self.api, "url": self.address(environ), "parameters": json.loads(self.parameters)}

    def made(self, environ: Mapping[str, str]) -> Model:
        """Return the model. Raises ModelError for a variable, an address or a key that is missing; ScriptError."""
        if self.model.startswith(SCRIPT):
            return model_from_name(self.model, environ)
        if self.is_own:
            return own_model(self.model)
        if self.model.startswith(INSPECT):
            return _inspect_model(self.model.removeprefix(INSPECT), json.loads(self.parameters))
        for name in filter(None, (self.url_from, self.key_from)):
            _check_set(environ, name)
        full_name, options = split_options(self.model)
        before, _, after = full_name.partition("#")
        made = OpenAIModel(
            after or "default" if "://" in before else full_name,
            api=self.api,
            base_url=self.address(environ) or None,
            api_key=environ.get(self.key_from or "OPENAI_API_KEY"),
            settings=json.loads(self.parameters),
            timeout=self.timeout,
            **options,
        )
        made.required_key()
        return made


def own_model(name: str) -> Model:
    """Return a model of the user: an object, or the result of a class or function. Raises ValueError."""
    if name.endswith((".yaml", ".yml")):
        raise ValueError(f"the model {name!r} is a file; a script is {SCRIPT}{name}")
    made = own_object(name, "model", "answer", "a name, and a method answer(request, on_delta) that returns an Answer")
    return cast(Model, made)


def _inspect_model(name: str, parameters: Mapping[str, object]) -> Model:
    """Return a model of Inspect. Raises ModelError if Inspect is not installed."""
    try:
        bridge = import_module("agent.lab.bridges.inspect")
    except ImportError as error:
        raise ModelError(f"the model inspect:{name} needs Inspect: pip install inspect_ai ({error})") from error
    return cast(Model, bridge.InspectModel(name, parameters))


def _check_set(environ: Mapping[str, str], name: str) -> None:
    """Raise ModelError if a variable that the plan names is not set."""
    if not environ.get(name, "").strip():
        raise ModelError(f"the variable {name}, which the plan names, is not set; set it, or leave it out of the plan")
