"""The command line: its options, its output, and how it asks a model."""

import json

import pytest

from tests.outside.conftest import Place
from tests.outside.model_server import call, calling, calls_item, saying, says_item

pytestmark = pytest.mark.slow

DEPLOY = """\
tools:
  - name: deploy_app
    description: Deploys.
    category: admin
    cmd: echo
    args: ["deployed {{where}}"]
    parameters:
      where: {type: string}
"""


def test_every_inference_is_one_streamed_post_and_there_is_no_other_request(place: Place) -> None:
    config = place.folder / "config.yaml"
    config.write_text("options:\n  max_failures: 4\n")
    options = ("--preset", "default", "--config", config, "--option", "max_iterations=7", "--option", "doom_loop=none")

    said = place.run(calling(call("c1", "bash", {"command": "echo hi"})), saying("Do", "ne."), options=options)

    assert (said.code, said.out) == (0, "Done.\n")
    assert [(each.method, each.path) for each in place.server.requests] == [("POST", "/v1/chat/completions")] * 2
    assert all(each.body["stream"] is True for each in place.server.requests)
    assert all(each.body["model"] == "some-model" for each in place.server.requests)
    assert place.server.requests[0].headers["authorization"] == "Bearer a-key-for-nobody"
    assert place.server.requests[0].body["messages"][-1] == {"role": "user", "content": "Do it"}
    configuration = place.log.header["configuration"]
    assert [configuration[name] for name in ("max_failures", "max_iterations", "doom_loop")] == [4, 7, None]


def test_the_other_wire_is_the_responses_api(place: Place) -> None:
    call_item = calls_item("c1", "bash", {"command": "echo hi"})

    said = place.run(call_item, says_item("Done."), options=("--api", "responses"))

    assert (said.code, said.out) == (0, "Done.\n"), said.err
    assert [(each.method, each.path) for each in place.server.requests] == [("POST", "/v1/responses")] * 2
    assert all(each.body["stream"] is True for each in place.server.requests)
    outputs = [item for item in place.server.requests[1].body["input"] if item.get("type") == "function_call_output"]
    assert [(item["call_id"], item["output"]) for item in outputs] == [("c1", "hi\n")]


def test_a_script_can_be_the_model_and_the_final_text_alone_is_on_standard_output(place: Place) -> None:
    step = {"say": "I look.", "call": {"tool": "bash", "arguments": {"command": "echo seen"}}}

    said = place.play(step, "All is there.")

    assert (said.code, said.out) == (0, "All is there.\n")
    assert "I look." in said.err
    assert "seen" in said.err
    assert place.server.requests == []


def test_a_declared_secret_is_in_neither_the_log_nor_the_json(place: Place) -> None:
    """The key of the model is at hand as a variable: `a-key-for-nobody`."""
    step = {"call": {"tool": "bash", "arguments": {"command": "echo a-key-for-nobody"}}}

    said = place.play(step, "Done.", options=("--json", "--secret", "OPENAI_API_KEY"))

    assert "a-key-for-nobody" not in said.out
    assert [json.loads(line) for line in said.out.splitlines()] == place.log.lines[1:]
    assert "REDACTED" in place.log.told(place.log.data("call_answered")[0]["call"])


def test_an_option_reaches_every_row_of_the_preset_table(place: Place) -> None:
    presets = place.command("presets", "--json")
    table = {each["name"]: each for each in map(json.loads, presets.out.splitlines())}
    rows = {name: value for name, value in table["workspace"].items() if name not in ("name", "tools_file")}
    options = [word for name, value in rows.items() for word in ("--option", f"{name}={written(value)}")]

    said = place.play("Done.", options=("--preset", "coding", *options))

    assert said.code == 0, said.err
    assert {name: place.log.header["configuration"][name] for name in rows} == rows


def written(value: object) -> str:
    """A value as an option is written on the command line."""
    match value:
        case None | []:
            return "none"
        case bool():
            return str(value).lower()
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)


def deploy(id: str = "c1") -> dict[str, object]:
    return {"call": {"tool": "deploy_app", "arguments": {"where": "here"}, "id": id}}


def test_a_job_may_do_what_its_policy_lists_and_nothing_else(place: Place) -> None:
    """`mode=cron`, `allow=deploy_app`; the preset workspace reads its tools from the home folder."""
    (place.home / ".agent").mkdir()
    (place.home / ".agent" / "tools.yaml").write_text(DEPLOY)
    write = {"call": {"tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}, "id": "c2"}}
    job = ("--preset", "workspace", "--option", "mode=cron", "--option", "allow=deploy_app")

    place.play(deploy(), write, "Done.", options=job)

    assert place.log.told("c1") == "deployed here\n"
    assert place.log.told("c2").startswith("rejected:")
    assert "approval_asked" not in place.log.names


def test_the_preset_workspace_reads_its_files_from_home_and_config_replaces_both(place: Place) -> None:
    (place.home / ".agent").mkdir()
    (place.home / "open").mkdir()
    (place.home / ".agent" / "tools.yaml").write_text(DEPLOY)
    (place.home / ".agent" / "config.yaml").write_text("security:\n  allowed_paths: [~/open]\n")
    write = {"call": {"tool": "write_file", "arguments": {"path": "~/open/a.txt", "content": "x"}, "id": "w"}}
    place.play(write, "Done.", options=("--preset", "workspace"))
    first = place.log.lines[0]
    was_written = (place.home / "open" / "a.txt").exists()
    place.log.path.unlink()
    config = place.folder / "other.yaml"
    config.write_text("security:\n  allowed_paths: [/elsewhere]\n")

    place.play(write, "Done.", options=("--preset", "workspace", "--config", config))

    assert was_written
    assert "deploy_app" in first["tools"]
    assert "deploy_app" not in place.log.header["tools"]
    assert place.log.told("w").startswith("rejected:")


def test_the_workspace_is_an_allowed_root_beside_others_and_denied_paths_win(place: Place) -> None:
    (place.folder / "beside").mkdir()
    (place.workspace / "closed").mkdir()
    config = place.folder / "config.yaml"
    config.write_text(
        f"security:\n  allowed_paths: ['{place.folder}/beside']\n  denied_paths: ['{place.workspace}/closed']\n"
    )
    paths = {"relative": "a.txt", "beside": f"{place.folder}/beside/b.txt", "denied": "closed/c.txt", "out": "../d.txt"}
    calls = [
        {"tool": "write_file", "id": name, "arguments": {"path": path, "content": "x"}} for name, path in paths.items()
    ]

    place.play({"calls": calls}, "Done.", options=("--preset", "workspace", "--config", config))

    assert (place.workspace / "a.txt").read_text() == "x"
    assert (place.folder / "beside" / "b.txt").read_text() == "x"
    assert place.log.told("denied").startswith("rejected:")
    assert place.log.told("out").startswith("rejected:")
    assert not (place.workspace / "closed" / "c.txt").exists()
    assert not (place.folder / "d.txt").exists()
