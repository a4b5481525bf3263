"""Settings and clients that run what stands in a word: `git config core.pager CMD`, `\\! CMD` in a database client."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.handed import handed_in_code
from constitution.shell.flow import Flow
from constitution.special.fetched import CLONE_TAKES, clone
from constitution.tables.programs import SSH_TAKES, is_bare_shell, read_line
from constitution.zones import UNKNOWN, is_private

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["aws", "database", "git", "look_up", "npm", "ssh"]

RUNS = re.compile(
    r"(?i)^(core\.(pager|editor|sshcommand|fsmonitor|askpass)|alias\.\S+|credential\.(\S+\.)?helper"
    r"|filter\.\S+|diff\.\S+"
    r"|sequence\.editor|merge\.\S+\.driver|pager\.\S+|difftool\.\S+|mergetool\.\S+)$"
)
GIT_TAKES = frozenset("-C -c --git-dir --work-tree --namespace --exec-path --config-env".split())  # noqa: SIM905
PROGRAMS = re.compile(r"(?i)\b(?:from|to)\s+program\s+'((?:[^']|'')*)'")
ESCAPES = re.compile(r"(?:\\!|^\.(?:shell|system)|(?<![\w.])system)\s+(.*)")


def git(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`git -c KEY=VALUE`, `git config KEY VALUE`, `git bisect run CMD`, `git submodule foreach CMD`."""
    line = read_line(argv[1:], GIT_TAKES, to_operand=True)
    for setting in line.value_of("-c"):
        key, _, value = setting.partition("=")
        _setting(examination, key, value, walk)
    operands = list(line.operands)
    _cleans_elsewhere(examination, line.value_of("-C", "--work-tree"), operands, walk)
    _kept_and_sent(examination, operands, walk)
    if operands[:2] in (["credential", "fill"], ["credential-store", "get"], ["credential-osxkeychain", "get"]):
        examination.found(Effect.TAKE_KEYS, walk, program=name, says="show a password")
    for word in operands[1:]:
        if word.startswith("ext::"):
            walk.nested(word.removeprefix("ext::").replace("% ", " "))
    if operands[:1] == ["clone"]:
        for setting in read_line(operands[1:], CLONE_TAKES).value_of("-c", "--config"):
            key, _, value = setting.partition("=")
            _setting(examination, key, value, walk)
        clone(examination, operands[1:], walk)
    if operands[:1] == ["config"]:
        _configure(examination, operands[1:], walk)
    for verb, word in (("bisect", "run"), ("submodule", "foreach")):
        if operands[:1] == [verb] and word in operands:
            command = [part for part in operands[operands.index(word) + 1 :] if part not in ("--recursive", "--quiet")]
            walk.nested(" ".join(command)) if len(command) == 1 else walk.invoke(command or [":"], stdin)


def _cleans_elsewhere(examination: "Examination", folders: tuple[str, ...], operands: list[str], walk: "Walk") -> None:
    """`git -C / clean -fdx`: what is not tracked is deleted there."""
    flags = read_line(operands[1:], frozenset(["-e", "--exclude"])).flags
    if operands[:1] == ["clean"] and flags & {"-f", "--force"} and not flags & {"-n", "--dry-run"}:
        for folder in folders:
            if folder.strip("./") or folder.startswith("/"):
                examination.found(Effect.DELETE_TREE, walk, program="git", path=folder)


def _kept_and_sent(examination: "Examination", operands: list[str], walk: "Walk") -> None:
    """`git add .env`, `git push URL`, `git remote add NAME URL`."""
    for word in operands[1:] if operands[:1] == ["add"] else ():
        if is_private(word):
            examination.found(Effect.READ, walk, program="git", path=word, says="keep {path} in the history")
    if operands[:1] == ["push"]:
        _push(examination, operands[1:], walk)
    if operands[:2] == ["remote", "add"] and len(operands) > 3:
        examination.contents.remotes[operands[-2]] = operands[-1]


def _configure(examination: "Examination", words: list[str], walk: "Walk") -> None:
    line = read_line(words, frozenset(["-f", "--file", "--type"]))
    operands = line.operands[1:] if line.operands[:1] == ("set",) else line.operands
    if len(operands) < 2 or line.flags & {"--get", "--get-all", "--get-regexp", "--list", "-l"}:
        return
    key, value = operands[0], " ".join(operands[1:])
    if line.flags & {"--global", "--system"}:
        examination.discoveries.placed(lambda: _setting(examination, key, value, walk))
    else:
        _setting(examination, key, value, walk)
    for flag, file in (("--global", "~/.gitconfig"), ("--system", "/etc/gitconfig")):
        if flag in line.flags:
            examination.found(
                Effect.WRITE, walk, program="git", path=file, says="change the settings of every repository"
            )


FOLDER_SETTINGS = re.compile(r"(?i)^(core\.hookspath|init\.templatedir|include(if\..*)?\.path)$")
NO_REMOTES = ("origin", "upstream", "fork", "heroku", "gitlab", "github", "bitbucket", "dokku")


def _push(examination: "Examination", words: list[str], walk: "Walk") -> None:
    """`git push URL`, and `git push NAME` to a remote that was added a moment ago: the code goes to somebody else."""
    operands = read_line(words, frozenset(["-o", "--push-option", "--repo", "--receive-pack"])).operands
    target = operands[0] if operands else ""
    if ADDRESS.match(target) or (target in examination.contents.remotes and target not in NO_REMOTES):
        examination.found(Effect.UPLOAD, walk, program="git", says="send the repository to another place")


ADDRESS = re.compile(r"^(\w+://|[\w.-]+@[\w.-]+:)")


def _setting(examination: "Examination", key: str, value: str, walk: "Walk") -> None:
    if FOLDER_SETTINGS.match(key):
        says = "have git run what lies in {path}"
        examination.found(Effect.PERSIST, walk, program="git", path=value, says=says)
    if key.lower().startswith("credential.") and value.startswith("!"):
        examination.found(Effect.SHOW_SECRETS, walk, program="git", says="hand passwords to another program")
    if not RUNS.match(key) or value in ("true", "false", "store", "cache", "osxkeychain", ""):
        return
    if not key.lower().startswith("alias."):
        walk.nested(value.removeprefix("!"))
    else:
        walk.nested(value[1:] if value.startswith("!") else f"git {value}")


def database(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    r"""`psql -c '\! CMD'`, `sqlite3 x '.shell CMD'`, `mysql -e 'system CMD'`, and the same in their input."""
    for word in [*argv[1:], *stdin.text.splitlines()]:
        if match := ESCAPES.search(word):
            if is_bare_shell(match[1]):
                says = "start a shell in which anything can be typed"
                examination.found(Effect.ESCAPE_SHELL, walk, program=name, says=says)
            walk.nested(match[1])
        handed_in_code(examination, name, word, walk)
        for script in PROGRAMS.findall(word):
            walk.nested(script.replace("''", "'"))
    if stdin.text:
        examination.examine([name, *(["x"] if name == "sqlite3" else []), stdin.text], Flow(stdin.origin), walk)


def aws(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`aws ssm send-command --parameters 'commands=["rm -rf /"]'`: what other machines are to run."""
    for word in argv[1:] if "send-command" in argv else ():
        if "commands=" in word or '"commands"' in word:
            quoted = re.findall(r"[\"']((?:[^\"'\\]|\\.)+)[\"']", word.partition("commands")[2])
            for script in quoted or [word.partition("=")[2]]:
                walk.nested(script)


def npm(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`npm pkg set scripts.postinstall=COMMAND`, `npm set-script NAME COMMAND`: it runs with the next install."""
    for script in argv[3:4] if argv[1:2] == ["set-script"] else ():
        walk.nested(script)
    if argv[1:3] == ["pkg", "set"]:
        for word in argv[3:]:
            key, _, value = word.partition("=")
            if key.startswith("scripts."):
                walk.nested(value)


def ssh(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`ssh -R 2222:localhost:22 HOST`: whoever is there gets a way in here."""
    takes = [*SSH_TAKES.split(), "-M"] if name == "autossh" else SSH_TAKES.split()
    line = read_line(argv[1:], frozenset(takes), to_operand=True)
    if "-R" in line.flags or any("RemoteForward" in value for value in line.value_of("-o")):
        examination.found(Effect.REVERSE_TUNNEL, walk, program=name, says="give another machine a way in")


ENCODES = re.compile(rb"\b(base64|base32|xxd|hexdump|od)\b")


def look_up(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`dig NAME`, `ping NAME`: what is put into a name goes to whoever answers for it."""
    for word in argv[1:]:
        if UNKNOWN in word and name == "ping" and "-p" in argv:
            examination.found(Effect.LEAK, walk, program=name, says="send data to another machine, in packets")
        if UNKNOWN in word and re.search(r"\0[^\0/]*\.[A-Za-z][\w-]*\.?$", word):
            says = "send data to another machine, in a name that is looked up"
            computed = (
                "$(" in walk.evidence.text or "`" in walk.evidence.text or ENCODES.search(walk.source) is not None
            )
            examination.found(Effect.LEAK if computed else Effect.UPLOAD, walk, program=name, says=says)
