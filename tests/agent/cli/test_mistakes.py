"""Wrong input: one clear sentence on standard error, the right exit code, no traceback, and nothing lost."""

import re
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, RunOf, Script
from tests.tables import rows

WATCHED = ("--monitor", "monitor=constitution")
RUN = ("run", "go", "--model", "{script}", "--workspace", "{workspace}")


@pytest.mark.slow
@rows(
    ("arguments", "sentence"),
    [
        (("nosuch",), "invalid choice: 'nosuch'; there are: demo, run, chat, "),
        (("rnu", "go"), "invalid choice: 'rnu'; did you mean 'run'? See bpagent --help"),
        (("run", "go", "--modle", "x"), "unrecognized arguments: --modle x; did you mean '--model'? See bpagent run"),
        (("run", "go", "--modle=x"), "unrecognized arguments: --modle=x; did you mean '--model'? See bpagent run"),
        (("--modle", "x"), "--modle stands before the command; write bpagent run ... --model; see bpagent --help"),
        (("--model=x", "run", "go"), "--model stands before the command; write bpagent run ... --model"),
        (("--verison",), "unrecognized arguments: --verison; did you mean '--version'? See bpagent --help"),
        (("--nosuch", "run"), "unrecognized arguments: --nosuch; see bpagent --help"),
        (("run",), "the following arguments are required: PROMPT; see bpagent run --help"),
        (("run", "go", "--nosuch"), "unrecognized arguments: --nosuch; see bpagent run"),
        (("run", "go"), "no model is named; give one, such as gpt-5-mini"),
        (("run", "go", "--model", "gpt-5-mini"), "no API key: set OPENAI_API_KEY"),
        (("run", "go", "--model", "127.0.0.1:8904/v1"), "no address without http://; write http://127.0.0.1:8904/v1"),
        (("run", "go", "--model", "localhost:8080"), "no address without http://; write http://localhost:8080"),
        ((*RUN, "--role", "trustd=gpt"), "there is no role 'trustd'; did you mean 'trusted'?"),
        (("run", "go", "--model", "ftp://x/v1"), "'ftp://x/v1' is not an address"),
        (("run", "go", "--model", "script:{tmp}/nosuch.yaml"), "nosuch.yaml: cannot be read: no such file"),
        (("run", "go", "--model", "script:{tmp}/broken.yaml"), "broken.yaml:2:5: unknown key 'sya'"),
        (("run", "go", "--model", "../work.yaml"), "looks like a script; did you mean script:../work.yaml?"),
        (("run", "go", "--model", "scripted:nope"), "looks like a script; did you mean script:nope?"),
        ((*RUN, "--option", "policy=strct"), "there is no policy 'strct'; did you mean 'strict'?"),
        (("run", "go", "--model", "script:"), "'script:' names no file; write script:FILE.yaml"),
        (
            (*RUN[:-1], ""),
            "argument --workspace: an empty text names nothing; leave the option out, or give it",
        ),
        ((*RUN, "--preset", ""), "argument --preset: an empty text names nothing"),
        ((*RUN, "--log", " "), "argument --log: an empty text names nothing"),
        (("run", "go", "on"), "unrecognized arguments: on (put a text of several words in quotes); see bpagent run"),
        (("demo", "--preset", "x"), "unrecognized arguments: --preset x; see bpagent demo --help"),
        (
            ("check", "ls", "-l"),
            "unrecognized arguments: -l (put a text of several words in quotes); see",
        ),
        ((*RUN, "--preset", "defalt"), "there is no preset 'defalt'; did you mean 'default'"),
        ((*RUN, "--preset", "strict"), "there is no preset 'strict', but a policy: --option policy=strict"),
        ((*RUN, "--option", "max_iteration=1"), "there is no option 'max_iteration'; did you mean 'max_iterations'"),
        ((*RUN, "--option", "max_iterations"), "--option 'max_iterations' has no value; write NAME=VALUE"),
        ((*RUN, "--option", "max_iterations=-1"), "option max_iterations='-1': 'max_iterations' must be >= 1: -1"),
        ((*RUN, "--option", "max_iterations=many"), "option max_iterations='many': expected a whole number"),
        ((*RUN, "--option", "system_prompt={who}"), "a system prompt may hold {workspace}, "),
        ((*RUN, "--protocol", "rules.py"), "'rules.py' names nothing; write FILE.py:NAME or module:NAME"),
        ((*RUN, "--protocol", "{tmp}/nosuch.py:x"), "nosuch.py cannot be imported: FileNotFoundError"),
        ((*RUN, "--protocol", "no.such.module:x"), "cannot be imported: ModuleNotFoundError"),
        ((*RUN, "--protocol", "{tmp}/rules.py:x"), "has no 'x'; protocols in it: rule, with_argument"),
        ((*RUN, "--protocol", "{tmp}/rules.py:rul"), "has no 'rul'; did you mean 'rule'?"),
        ((*RUN, "--protocol", "{tmp}/rules.py:number"), "decorate a generator function with @bthread"),
        ((*RUN, "--protocol", "{tmp}/rules.py:with_argument"), "needs arguments"),
        ((*RUN, "--protocol", "{tmp}/broken.py:x"), "cannot be imported: SyntaxError"),
        ((*RUN, "--log", "{tmp}/there.jsonl"), "there.jsonl exists already; name another file"),
        ((*RUN, "--log", "{tmp}"), "Is a directory"),
        ((*RUN, "--log", "{tmp}/there.jsonl/x.jsonl"), "cannot write the log"),
        ((*RUN, "--log", "/dev/full"), "cannot write the log /dev/full: No space left on device"),
        (("demo", "--log", "{tmp}/there.jsonl"), "there.jsonl exists already; name another file"),
        ((*RUN, "--config", "{tmp}/nosuch.yaml"), "nosuch.yaml: cannot be read: no such file"),
        ((*RUN, "--config", "{tmp}/twice.yaml"), "twice.yaml:2:1: not valid YAML: found duplicate key"),
        ((*RUN, "--config", "{tmp}/typed.yaml"), "typed.yaml:2:19: option max_iterations: expected a whole number"),
        ((*RUN, "--config", "{tmp}/misspelt.yaml"), "misspelt.yaml:2:3: unknown key 'max_iteration'; did you mean"),
        (("verify", "--config", "{tmp}/twice.yaml"), "twice.yaml:2:1: not valid YAML"),
        (("tools", "--config", "{tmp}/twice.yaml"), "twice.yaml:2:1: not valid YAML"),
        (("presets", "defalt"), "there is no preset 'defalt'; did you mean 'default'"),
        ((*RUN, "--api", "resonses"), "argument --api: invalid choice: 'resonses'; did you mean 'responses'?"),
        (("run", "go", "--model", "{script}", "--workspace", "{tmp}/nosuch"), "does not exist; name a folder"),
        (("run", "go", "--model", "{script}", "--workspace", "{tmp}/there.jsonl"), "is a file; name a folder"),
        (("run", " ", "--model", "{script}"), "the prompt is empty"),
        (("what-if", "{log}"), "nothing would differ"),
        (("what-if", "{log}", "--policy", "gatd"), "there is no policy 'gatd'; did you mean 'gated'"),
        (("what-if", "{log}", "--without", "nobody"), "has no b-thread 'nobody'"),
        (("why", "{log}", "call_9"), "has no call 'call_9'; calls: call_1, call_2, call_3"),
        (("check",), "name one command, or a file of commands with --file FILE"),
        (("check", "ls", "--file", "x"), "name one command, or a file of commands"),
        (("check", "--policy", "defalt", "ls"), "there is no policy 'defalt'; did you mean 'default'"),
        (("check", "--file", "{tmp}/nosuch"), "cannot read"),
        (("check", "--file", "{tmp}/empty"), "holds no command"),
        (("replay", "{tmp}/nosuch.jsonl"), "cannot read the log"),
        (("replay", "{tmp}/broken.yaml"), "line 1: this is not JSON"),
        (("tools", "--preset", "defalt"), "there is no preset 'defalt'"),
        (("verify", "--max-states", "0"), "argument --max-states: expected a number from 1 on, found '0'"),
        (("verify", "--protocol", "nothing"), "there is no protocol 'nothing'; there are: constitution_only"),
        (("protocols", "blocking_montor"), "did you mean 'blocking_monitor'"),
        ((*RUN, "--protocol", "blocking_montor"), "did you mean 'blocking_monitor'"),
        ((*RUN, "--protocol", "blocking_monitor"), "needs the monitor 'monitor'; give --monitor monitor=constitution"),
        ((*RUN, "--protocol", "upfront_audit"), "needs the auditor 'auditor'; give --auditor auditor=model:MODEL"),
        ((*RUN, "--protocol", "defer_to_trusted", *WATCHED), "needs the role 'trusted'; give --role trusted=MODEL"),
        ((*RUN, "--protocol", "ensemble", *WATCHED), "ensemble needs the monitor 'second'"),
        ((*RUN, "--monitor", "monitor"), "is no pair; write --monitor monitor=constitution"),
        ((*RUN, "--monitor", "monitor=constant:2"), "write a number from 0 to 1"),
        ((*RUN, "--monitor", "monitor=constant:maybe"), "write a number from 0 to 1"),
        ((*RUN, "--monitor", "monitor={tmp}/rules.py:number"), "a monitor has a method `score(evidence)`"),
        ((*RUN, "--role", "trusted="), "--role 'trusted=' is no pair; write --role trusted=MODEL"),
        ((*RUN, "--role", "foo="), "--role: there is no role 'foo'; there are: editor, trusted"),
        ((*RUN, "--mcp", ""), "--mcp '' names no program"),
        ((*RUN, "--mcp", "notes:"), "--mcp 'notes:' names no program"),
        ((*RUN, "--mcp", "A=b"), "names no program"),
        ((*RUN, "--mcp", "'x"), "is no command: no closing quotation"),
        ((*RUN, "--mcp", "A=$NOT_SET x"), "the variable NOT_SET is not set"),
        ((*RUN, "--mcp", "no-such-server"), "cannot start 'no-such-server': no such program on PATH"),
        ((*RUN, "--mcp", "true"), "it is no MCP server, or ended at once"),
        ((*RUN, "--mcp", "sh -c 'echo no module x >&2; exit 1'"), "ended at once; it said: no module x"),
        (("experiment",), "give one FILE.yaml, or freeze FILE.yaml, or --example"),
        (("experiment", "--example", "x.yaml"), "give one FILE.yaml"),
        (("experiment", "a.yaml", "b.yaml"), "give one FILE.yaml"),
        (("experiment", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("experiment", "{tmp}/plan.yaml"), "plan.yaml:3:13: there is no protocol 'taint_flw'; did you mean"),
    ],
)
def test_wrong_input_is_reported_in_one_sentence_and_exits_with_2(
    arguments: tuple[str, ...],
    sentence: str,
    command: Command,
    script: Script,
    workspace: Path,
    tmp_path: Path,
    recorded_log: Path,
) -> None:
    (tmp_path / "broken.yaml").write_text("steps:\n  - sya: hello\n")
    (tmp_path / "twice.yaml").write_text("preset: gated\npreset: gated\n")
    (tmp_path / "typed.yaml").write_text("options:\n  max_iterations: many\n")
    (tmp_path / "misspelt.yaml").write_text("options:\n  max_iteration: 5\n")
    (tmp_path / "broken.py").write_text("def\n")
    (tmp_path / "plan.yaml").write_text("settings: [repair]\npolicies: [honest]\nprotocols: [taint_flw]\n")
    (tmp_path / "rules.py").write_text(
        "from bp import bthread, sync\n"
        "number = 1\n\n\n"
        "@bthread\ndef rule():\n    yield sync()\n\n\n"
        "@bthread\ndef with_argument(limit):\n    yield sync()\n"
    )
    (tmp_path / "there.jsonl").write_text("kept\n")
    (tmp_path / "empty").write_text("# nothing\n\n")
    names = {"tmp": tmp_path, "workspace": workspace, "script": script("Done."), "log": recorded_log}

    said = command(
        *(re.sub("{(tmp|workspace|script|log)}", lambda name: str(names[name[1]]), word) for word in arguments)
    )

    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert said.err.startswith("bpagent: ")
    assert said.err.count("\n") == 1
    assert (tmp_path / "there.jsonl").read_text() == "kept\n"


def test_a_log_that_cannot_be_written_stops_the_run_before_it_begins(
    run_of: RunOf, command: Command, home: Path
) -> None:
    (home / ".bpagent").write_text("a file in the way")

    said = command(*run_of("Done."))

    assert (said.code, said.out) == (2, "")
    assert "cannot write the log" in said.err


@pytest.mark.slow
def test_impossible_calls_are_shown_and_do_not_fail_the_run(run_of: RunOf, command: Command) -> None:
    calls = [
        {"tool": "bsah", "arguments": {"command": "ls"}},
        {"tool": "bash", "arguments": {"comand": "ls"}},
        {"tool": "bash", "arguments": '{"command": "l'},
    ]

    said = command(*run_of({"calls": calls}, "Done."))

    assert (said.code, said.out) == (0, "Done.\n")
    assert said.err.count("refused  not executed") == 3
    assert "unknown tool 'bsah'" in said.err


@pytest.mark.slow
def test_a_full_disk_under_standard_output_is_reported(run_of: RunOf, process: Command) -> None:
    commands = (
        run_of("Done."),
        ("presets",),
        ("check", "rm -rf /"),
    )
    with open("/dev/full", "w") as full:
        said = [process(*words, stdout=full) for words in commands]

    assert [each.code for each in said] == [1, 1, 1]
    problem = "bpagent: cannot write the output: No space left on device\n"
    assert [each.err[-len(problem) :] for each in said] == [problem] * 3
    assert "Traceback" not in said[0].err
