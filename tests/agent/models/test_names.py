"""Which model a name means, and what a missing key, a bad address and an empty name are told."""

from pathlib import Path

import pytest

from agent.models.model import ModelError
from agent.models.openai_model import OpenAIModel, model_from_name
from agent.models.scripted import ScriptedModel, ScriptError

KEY = {"OPENAI_API_KEY": "k"}


def test_a_script(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("steps: [hi]")

    assert isinstance(model_from_name(f"script:{tmp_path}/s.yaml", {}), ScriptedModel)
    with pytest.raises(ScriptError, match="no such file"):
        model_from_name(f"script:{tmp_path}/none.yaml", {})
    with pytest.raises(ModelError, match="'script:' names no file"):
        model_from_name("script:", {})


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("gpt", KEY, OpenAIModel("gpt", base_url="https://api.openai.com/v1", api_key="k")),
        ("gpt", {"OPENAI_API_KEY": " k\n", "OPENAI_BASE_URL": "http://h:1/v1/"},
         OpenAIModel("gpt", base_url="http://h:1/v1", api_key="k")),
        ("gpt", {**KEY, "OPENAI_BASE_URL": ""}, OpenAIModel("gpt", api_key="k")),
        ("gpt", {"OPENAI_BASE_URL": "http://h:1/v1"}, OpenAIModel("gpt", base_url="http://h:1/v1")),
        ("http://h:1/v1", {}, OpenAIModel("default", base_url="http://h:1/v1")),
        ("http://h:1/v1#qwen/3", {**KEY, "OPENAI_BASE_URL": "http://other"},
         OpenAIModel("qwen/3", base_url="http://h:1/v1", api_key="k")),
    ],
)  # fmt: skip
def test_names_and_addresses(name: str, environ: dict[str, str], expected: OpenAIModel) -> None:
    assert model_from_name(name, environ) == expected


@pytest.mark.parametrize(
    ("name", "environ", "said"),
    [
        ("gpt", {}, "no API key: set OPENAI_API_KEY"),
        (
            "gpt",
            {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "https://api.openai.com/v1/"},
            "no API key: set OPENAI_API_KEY",
        ),
        ("https://api.openai.com/v1", {}, "no API key: set OPENAI_API_KEY"),
        ("gpt", {"OPENAI_API_KEY": "clé"}, "the API key holds characters that no key has"),
        (
            "gpt",
            {**KEY, "OPENAI_BASE_URL": "localhost:80"},
            "the base URL 'localhost:80' is not an address; write it like",
        ),
        ("ftp://h/v1", KEY, "the base URL 'ftp://h/v1' is not an address"),
        ("http://h:99999/v1", KEY, "the base URL 'http://h:99999/v1' is not an address"),
        ("http://[::1/v1", KEY, "is not an address"),
        (" ", KEY, "no model is named"),
    ],
)
def test_what_cannot_be_a_model_is_told_in_one_sentence(name: str, environ: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError) as caught:
        model_from_name(name, environ)

    assert said in str(caught.value)
    assert not caught.value.retryable
