"""`bpagent runs`: the folder of runs, their logs by id, and summaries."""

import json
import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from glob import escape
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from attrs import asdict, define, field

from agent.cli.arguments import called
from agent.cli.errors import OK, Mistake, say
from agent.cli.screen import Tone, cut, screen_on, visible
from agent.log.chain import own_folder
from agent.log.reading import LogError, OldFormat, header_of
from agent.log.writing import is_in_use
from agent.page.wording import counted
from agent.tools.snapshots.store import Snapshots
from agent.tools.temporary import remove_folder
from agent.vocabulary.messages import Usage, typed

# The folder of runs, and the logs in it.


def runs_folder() -> Path:
    """Return the folder of runs: `runs` in BPAGENT_HOME, or else in ~/.bpagent."""
    home = os.environ.get("BPAGENT_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".bpagent") / "runs"


def name_beside(log: Path) -> str:
    """Return the name of files about a log that are not in its folder, without their endings."""
    return sha256(os.path.realpath(log).encode()).hexdigest()[:32]


def scratches_of(log: Path) -> Path:
    """Return the folder in which what the commands of a run wrote to /tmp stays until the run is deleted."""
    return own_folder().absolute() / "scratch" / name_beside(log)


def append_privately(path: Path, content: bytes) -> None:
    """Append to a file that only its owner can read; it and its folder are made if they are missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.write(content)


def new_log(given: str | None, now: datetime) -> Path:
    """Return the path for the log of a run: the given one, else a new file in the folder, which is made.

    Raises Mistake when the folder cannot be made.
    """
    if given:
        return Path(given).expanduser()
    folder = runs_folder()
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)  # logs hold content that the tools read
    except OSError as error:
        reason = f"{error.strerror}; set BPAGENT_HOME, or name a --log"
        raise Mistake(f"cannot write the log in {folder}: {reason}") from error
    return folder / f"{now:%Y%m%d-%H%M%S}-{token_hex(2)}.jsonl"


def latest_log() -> Path | None:
    """Return the log in the folder that was written to last; None when there is none."""
    return next(reversed(_logs()), None)


def _logs() -> list[Path]:
    """Return the logs in the folder, the one that was written to last at the end."""
    return sorted(runs_folder().glob("*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.name))


def find_log(name: str | None = None) -> Path:
    """Return the log of a path or of the beginning of an id; without a name the latest, announced. Raises Mistake."""
    if name is None:
        latest = latest_log()
        if latest is None:
            raise Mistake(f"there is no run yet in {runs_folder()}; name a log, or make one: bpagent run PROMPT")
        say(f"the latest run: {latest}")
        return latest
    path = Path(name).expanduser()
    if "/" in name or name.endswith(".jsonl") or path.exists():
        return path
    found = sorted(runs_folder().glob(f"{escape(name)}*.jsonl")) if name else []
    found = [path for path in found if path.stem == name] or found  # a fork's id begins with that of its run
    if len(found) == 1:
        return found[0]
    if not found:
        raise Mistake(f"there is no log {name!r}, and no run whose id begins so; see bpagent runs")
    raise Mistake(f"{len(found)} runs begin with {name!r}: {', '.join(path.stem for path in found[-5:])}; name one")


def find_logs(names: Iterable[str]) -> list[Path]:
    """Return the named logs; a folder stands for those in it. Raises Mistake."""
    paths = []
    for name in names:
        folder = Path(name).expanduser()
        if not folder.is_dir():
            paths.append(find_log(name))
        elif found := sorted(folder.glob("*.jsonl")):
            paths += found
        else:
            raise Mistake(f"there is no log in the folder {name}; logs are named .jsonl")
    return paths


# Summaries, and `bpagent runs`, which lists them.

SPENDING = ("inference_finished", "summary_finished", "tool_finished")
SUMMARIZED = {"prompt_given", "run_ended", "answer_committed", "approval_asked", "approval_answered", *SPENDING}
"""The records that a summary needs; the others are not parsed."""


@define
class Summary:
    """A run at a glance.

    status: how the last run ended, "running", "waiting" for a decision, "interrupted", or "empty" without a task.
    begun, preset, model, workspace: from the header. reason: why it ended. waiting: calls that are not decided yet.
    """

    path: Path
    begun: str
    preset: str
    model: str
    workspace: str
    status: str = ""
    reason: str = ""
    prompt: str = ""
    turns: int = 0
    usage: Usage = field(factory=Usage)
    waiting: list[str] = field(factory=list)

    @property
    def id(self) -> str:
        """The name of the run."""
        return self.path.stem

    def plain(self) -> dict[str, Any]:
        """Return this as plain data; cost: US dollars, None without a known price."""
        own = asdict(self, filter=lambda attribute, _: attribute.name not in ("path", "usage"))
        spent = {"tokens": self.usage.tokens, "cost": self.usage.cost}
        return {"id": self.id, **own, **spent, "log": str(self.path)}

    def fold(self, name: str, data: dict[str, Any]) -> None:
        """Record a line of the log."""
        match name:
            case "prompt_given":
                self.prompt, self.status, self.reason = self.prompt or typed(data["text"]), "", ""
            case "answer_committed":
                self.turns += 1
            case "run_ended":
                self.status, self.reason = data["status"], data["reason"]
            case "approval_asked":
                self.waiting.append(data["call"])
            case "approval_answered" if data["call"] in self.waiting:
                self.waiting.remove(data["call"])
            case _ if name in SPENDING:
                told = data.get("usage") or data.get("result", {}).get("details", {}).get(
                    "usage", {}
                )  # of a tool that asks models
                self.usage += Usage(told.get("input_tokens", 0), told.get("output_tokens", 0), told.get("cost"))


def summaries(limit: int = 0) -> tuple[list[Summary], list[str]]:
    """Return the latest runs of the folder, in order of time, and a sentence for each file that is no log.

    limit: how many at most; 0: all.
    """
    found, broken, old = [], [], 0
    for path in _logs()[-limit:]:
        try:
            found.append(summarize(path))
        except OldFormat:
            old += 1
        except (LogError, OSError, ValueError, KeyError, TypeError) as error:
            broken.append(f"{path} is no log of a run: {error}")
    if old:
        cure = called("convert", str(runs_folder()))
        broken.append(f"{counted(old, 'log')} of an earlier format left out; `{cure}` converts such logs")
    return found, broken


def summarize(path: Path) -> Summary:
    """Return the summary of a run. Raises OSError, and LogError or ValueError for an invalid log."""
    in_use = is_in_use(path)
    with path.open("rb") as file:
        header = header_of(path, file.readline())
        begun, preset, model, workspace = (str(header.get(key)) for key in ("begun", "preset", "model", "workspace"))
        found = Summary(path, begun, preset, model, workspace)
        for line in file:
            found.fold(*_of_interest(line))
    rests = header.get("approvals") == "later" and found.waiting
    broken_off = "interrupted" if found.prompt else "empty"
    found.status = found.status or ("running" if in_use else "waiting" if rests else broken_off)
    if found.status != "waiting":
        found.waiting.clear()
    return found


def _of_interest(line: bytes) -> tuple[str, dict[str, Any]]:
    """Return name and data of a record that a summary needs; an empty name for others and for a torn line."""
    _, _, rest = line[:200].partition(b'"name":"')
    if rest.partition(b'"')[0].decode("ascii", "replace") not in SUMMARIZED or not line.endswith(b"\n"):
        return "", {}
    record = json.loads(line)
    return record["name"], record["data"]


FOLDER, END, NARROWEST_PROMPT, TIME = 16, 11, 5, 11  # columns
WITH_FOLDER, WITH_COST, WITH_TIME = 45, 60, 73  # the least columns beside the id for these to be shown

TONES: dict[str, Tone] = {
    "completed": "good",
    "running": "action",
    "waiting": "question",
    "failed": "refused",
    "doom_loop": "refused",
    "interrupted": "question",
}


def execute(arguments: Namespace) -> int:
    """List the runs, the latest last; or remove some, or all that was kept of their files."""
    if arguments.delete:
        return _delete([find_log(name) for name in arguments.delete])
    return _prune() if arguments.prune else _list(arguments)


def _list(arguments: Namespace) -> int:
    found, broken = summaries(arguments.limit)
    for sentence in broken:
        say(sentence)
    if arguments.json:
        for summary in found:
            print(json.dumps(summary.plain(), ensure_ascii=False))
        return OK
    screen = screen_on(sys.stdout, needed=True)
    if not found:
        screen.line(f"no runs in {runs_folder()} yet: bpagent run PROMPT makes one", "system")
        return OK
    longest = max(len(summary.id) for summary in found)
    screen.line(_row(("id", "written", "folder", "end", "turns", "cost", "prompt"), longest, screen.width), "title")
    for each in found:
        folder, prompt = visible(Path(each.workspace).name), visible(each.prompt)
        written = f"{datetime.fromtimestamp(each.path.stat().st_mtime):%m-%d %H:%M}"
        spent = f"{each.usage.tokens:,} tok" if each.usage.cost is None else f"${each.usage.cost:.2f}"
        cells = (each.id, written, folder, each.status, str(each.turns), spent, prompt)
        paint = partial(screen.painted, tone=TONES.get(each.status, "plain"))
        screen.line(_row(cells, longest, screen.width, paint))
    for each in found:
        if each.status == "waiting":
            screen.line(f"{each.id} waits for {visible(', '.join(each.waiting))}:", "question")
            decision = shlex.join(("resume", each.id, "--approve", each.waiting[0]))  # a model may give any id
            screen.line(f"    bpagent {visible(decision)}", "action")
    if any(each.status == "interrupted" for each in found):
        screen.line("interrupted runs go on with: bpagent resume ID", "system")
    return OK


def _row(cells: Sequence[str], longest: int, width: int, paint: Callable[[str], str] = str) -> str:
    """Return a row that fits the width; a narrow one omits columns."""
    name, written, folder, end, turns, cost, prompt = cells
    before, after = f"{name:{longest}}  ", "  "
    if width >= longest + WITH_TIME:
        before += f"{written:{TIME}}  "
    if width >= longest + WITH_FOLDER:
        before += f"{cut(folder, FOLDER):{FOLDER}}  "
    if width >= longest + WITH_COST:
        after = f"  {turns:>5}  {cost:>10}  "
    room = width - len(before) - END - len(after)
    told = f"{after}{cut(prompt, room)}" if room >= NARROWEST_PROMPT else ""
    return f"{before}{paint(f'{end:{END}}')}{told}".rstrip()


def _prune() -> int:
    """Remove all snapshots and scratch folders at once, with the secrets in them. Runs that go on take new ones."""
    stores = [*own_folder().glob("snapshots/*")]
    for folder in (*stores, *own_folder().glob("scratch/*")):
        remove_folder(str(folder))
    say(f"removed the snapshots of {len(stores)} folders; what their runs changed cannot be undone any more")
    return OK


SNAPSHOT_NAME = re.compile(rb'"snapshot":"([^"]+)/\d+"')


def _delete(logs: Sequence[Path]) -> int:
    """Remove runs: first what was kept of their files, unless a branch needs it, then their logs. Raises Mistake."""
    for log in logs:
        if is_in_use(log):
            raise Mistake(f"{log} is still being written; stop that run first: bpagent control")
        tasks = log.with_name(f"{log.stem}-tasks")
        own = [log, *tasks.glob("*.jsonl")]
        header = header_of(log, log.read_bytes().partition(b"\n")[0])
        others = (path for path in {*log.parent.glob("*.jsonl"), *_logs()} if path not in own)
        names = _snapshot_names(own) - _snapshot_names(others)
        options, workspace = header.get("configuration") or {}, str(header.get("workspace"))
        Snapshots.under(options, workspace, own_folder()).remove(*names)
        for folder in (scratches_of(log), tasks):
            remove_folder(str(folder))
        log.unlink()
        say(f"deleted {log}; what it changed cannot be undone any more")
    return OK


def _snapshot_names(logs: Iterable[Path]) -> set[str]:
    """Return the names under which runs have snapshots."""
    found = (name for log in logs for name in SNAPSHOT_NAME.findall(log.read_bytes()))
    return {json.loads(b'"%s"' % name) for name in found}
