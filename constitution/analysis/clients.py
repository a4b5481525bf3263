"""Clients of other machines and their settings: downloads, uploads, and commands that they run."""

import re

from constitution.analysis.program_rows import found_in
from constitution.analysis.steps import Change, Command, Found, Placed, Script, Started, Steps, What, Wrote, as_typed
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import Flow, Origin
from constitution.tables import pattern, sign
from constitution.tables.rows import SSH_TAKES, commands_of_ssh, own_takes, read_line
from constitution.zones import GLOB, is_private

GIT_TAKES = "-C -c --git-dir --work-tree --namespace --exec-path --config-env"


def git(command: Command) -> Steps:
    """`git -c KEY=VALUE`, `git config KEY VALUE`, `git bisect run CMD`, `git submodule foreach CMD`."""
    line = command.read(GIT_TAKES, to_operand=True)
    for setting in line.value_of("-c"):
        key, _, value = setting.partition("=")
        yield from _setting(key, value)
    operands = list(line.operands)
    yield from _cleans_elsewhere(line.value_of("-C", "--work-tree"), operands)
    yield from _kept_and_sent(operands, command)
    if operands[:2] in (["credential", "fill"], ["credential-store", "get"], ["credential-osxkeychain", "get"]):
        yield Found(Effect.TAKE_KEYS, says="show a password")
    for word in operands[1:]:
        if word.startswith("ext::"):
            yield Script(word.removeprefix("ext::").replace("% ", " "))
    if operands[:1] == ["clone"]:
        for setting in read_line(operands[1:], CLONE_TAKES).value_of("-c", "--config"):
            key, _, value = setting.partition("=")
            yield from _setting(key, value)
        yield from clone(operands[1:])
    if operands[:1] == ["config"]:
        yield from _configure(operands[1:])
    for verb, word in (("bisect", "run"), ("submodule", "foreach")):
        if operands[:1] == [verb] and word in operands:
            words = [part for part in operands[operands.index(word) + 1 :] if part not in ("--recursive", "--quiet")]
            yield Script(words[0]) if len(words) == 1 else Started(words or [":"], command.stdin, by_shell=True)


def _cleans_elsewhere(folders: tuple[str, ...], operands: list[str]) -> Steps:
    """`git -C / clean -fdx`: untracked files are deleted there."""
    flags = read_line(operands[1:], frozenset(["-e", "--exclude"])).flags
    if operands[:1] == ["clean"] and flags & {"-f", "--force"} and not flags & {"-n", "--dry-run"}:
        for folder in folders:
            if folder.strip("./") or folder.startswith("/"):
                yield Found(Effect.DELETE_TREE, path=folder)


def _kept_and_sent(operands: list[str], command: Command) -> Steps:
    """`git add .env`, `git push URL`, `git remote add NAME URL`."""
    for word in operands[1:] if operands[:1] == ["add"] else ():
        if is_private(word):
            yield Found(Effect.READ, path=word, says="commit {path}, which looks like a secret")
    if operands[:1] == ["checkout"] and "--" in operands and UNKNOWN in " ".join(operands).partition(" -- ")[2]:
        yield Found(Effect.HISTORY_LOSS, says="discard uncommitted work")
    if operands[:1] == ["push"]:
        yield from _push(operands[1:], command)
    if operands[:1] in (["pull"], ["fetch"], ["merge"]) and any(word in command.files.remotes for word in operands[1:]):
        yield Found(Effect.NETWORK, says="download from a remote that the same command adds")
    if operands[:2] == ["remote", "add"] and len(operands) > 3:
        yield Change(What.REMOTE, tuple(operands[-2:]))


def _configure(words: list[str]) -> Steps:
    line = read_line(words, frozenset(["-f", "--file", "--type"]))
    operands = line.operands[1:] if line.operands[:1] == ("set",) else line.operands
    if len(operands) < 2 or line.flags & {"--get", "--get-all", "--get-regexp", "--list", "-l"}:
        return
    key, value = operands[0], " ".join(operands[1:])
    if line.flags & {"--global", "--system"}:
        yield Placed(tuple(_setting(key, value)))
    else:
        yield from _setting(key, value)
    for flag, file in (("--global", "~/.gitconfig"), ("--system", "/etc/gitconfig")):
        if flag in line.flags:
            yield Found(Effect.WRITE, path=file, says="change the settings of every repository")


FOLDER_SETTINGS = pattern(r"(?i)^(core\.hookspath|init\.templatedir|include(if\..*)?\.path)$")
NO_REMOTES = ("origin", "upstream", "fork", "heroku", "gitlab", "github", "bitbucket", "dokku")


def _push(words: list[str], command: Command) -> Steps:
    """`git push URL`, and `git push NAME` to a remote that the script added: the code goes to another owner."""
    operands = read_line(words, frozenset(["-o", "--push-option", "--repo", "--receive-pack"])).operands
    target = operands[0] if operands else ""
    if ADDRESS.match(target) or (target in command.files.remotes and target not in NO_REMOTES):
        yield Found(Effect.UPLOAD, says="push the repository to another address")


ADDRESS = pattern(r"^(\w+://|[\w.-]+@[\w.-]+:)")


HARMLESS_VALUES = frozenset(
    ["", "true", "false", "cat", "less", "vim", "vi", "nano", "store", "cache", "osxkeychain", "auto"]
)


def _setting(key: str, value: str) -> Steps:
    if UNKNOWN in key or (
        "." in key
        and not sign("git_harmless_keys").match(key)
        and value.lower() not in HARMLESS_VALUES
        and not value.isdigit()
    ):
        yield Found(
            Effect.CONFIGURE_TOOL, says=f"set {key.replace(UNKNOWN, '…')[:60]}, which may make git run another program"
        )
    if FOLDER_SETTINGS.match(key):
        yield Found(Effect.PERSIST, path=value, says="make git run the files in {path}")
    if key.lower().startswith("credential.") and value.startswith("!"):
        yield Found(Effect.SHOW_SECRETS, says="give passwords to another program")
    if not sign("git_runs").match(key) or value in ("true", "false", "store", "cache", "osxkeychain", ""):
        return
    if not key.lower().startswith("alias."):
        yield Script(value.removeprefix("!"))
    else:
        yield Script(value[1:] if value.startswith("!") else f"git {value}")


def database(command: Command) -> Steps:
    r"""`psql -c '\! CMD'`, `sqlite3 x '.shell CMD'`, `mysql -e 'system CMD'`, and the same in their input."""
    for word in [*command.argv[1:], *command.stdin.text.splitlines()]:
        yield from found_in("console", word)
    if command.stdin.text:
        yield Started(
            [command.name, *(["x"] if command.name == "sqlite3" else []), command.stdin.text],
            Flow(command.stdin.origin),
        )


def aws(command: Command) -> Steps:
    """`aws ssm send-command --parameters 'commands=["rm -rf /"]'`: commands for other machines."""
    for word in command.argv[1:] if "send-command" in command.argv else ():
        if "commands=" in word or '"commands"' in word:
            quoted = re.findall(r"[\"']((?:[^\"'\\]|\\.)+)[\"']", word.partition("commands")[2])
            for script in quoted or [word.partition("=")[2]]:
                yield Script(script)


def npm(command: Command) -> Steps:
    """`npm pkg set scripts.postinstall=COMMAND`, `npm set-script NAME COMMAND`: it runs with the next install."""
    for script in command.argv[3:4] if command.argv[1:2] == ["set-script"] else ():
        yield Script(script)
    if command.argv[1:3] == ["pkg", "set"]:
        for word in command.argv[3:]:
            key, _, value = word.partition("=")
            if key.startswith("scripts."):
                yield Script(value)
            elif "ependencies." in f".{key}" and SOURCE.search(value):
                yield Found(Effect.FOREIGN_PACKAGES, says=f"install from {value[:80]}")


SOURCE = pattern(r"^(?!workspace|file|link|portal|catalog)[\w+.-]+:(?!\.|//localhost)|^[\w-]+/[\w.-]+$")
"""A package that is named by the place where it is: `github:x/y`, `git+https://...`, `x/y`."""


def ssh(command: Command) -> Steps:
    """`ssh -R 2222:localhost:22 HOST`: the other machine can connect back to this one."""
    line = command.read(f"{SSH_TAKES} -M" if command.name == "autossh" else SSH_TAKES, to_operand=True)
    if "-R" in line.flags or any("RemoteForward" in value for value in line.value_of("-o")):
        yield Found(Effect.REVERSE_TUNNEL, says="give another machine access to this one")
    for file in line.value_of("-F"):
        yield Found(Effect.CARRIED, path=file, says="take settings from {path}, which can start programs")


ENCODES = pattern(rb"\b(base64|base32|xxd|hexdump|od)\b")


def look_up(command: Command) -> Steps:
    """`dig NAME`, `ping NAME`: data in a name reach its name server."""
    for word in command.argv[1:]:
        if UNKNOWN in word and command.name == "ping" and "-p" in command.argv:
            yield Found(Effect.LEAK, says="send data to another machine, in packets")
        if UNKNOWN in word and re.search(r"\0[^\0/]*\.[A-Za-z][\w-]*\.?$", word):
            says = "send data to another machine, in a name that is looked up"
            computed = "$(" in command.text or "`" in command.text or ENCODES.search(command.source) is not None
            yield Found(Effect.LEAK if computed else Effect.UPLOAD, says=says)


def request(command: Command) -> Steps:
    """`curl -X DELETE http://localhost:9200/_all`, `curl https://example.com/?k=$AWS_SECRET_ACCESS_KEY`."""
    line = command.read("-X --request --method -H -d --data -u -o")
    method = "".join(line.value_of("-X", "--request", "--method")).upper()
    deletes = method == "DELETE" or (command.name in ("http", "https", "xh") and "DELETE" in command.argv)
    if any("_delete_by_query" in word for word in command.argv) or (
        deletes and any(map(sign("deletes_by_address").search, command.argv[1:]))
    ):
        yield Found(Effect.CLOUD_LOSS, says="delete data of a service")
    stays = any("localhost" in word or "127.0.0.1" in word for word in command.argv)
    if command.stdin.names == ("tar",) and not stays:
        yield Found(Effect.LEAK, says="send whole folders to another machine")
    if any(UNKNOWN in word for word in command.argv[1:]) and not stays:
        yield Change(What.SENT)
    if sign("key_sent").search(command.text):
        yield Found(Effect.LEAK, says="send a key to another machine")


STARTS = pattern(r"^\s*!(.+)$", re.M)
SENDS = pattern(r"^\s*(?:put|mput|send|reput|append)\s+(.+)$", re.I | re.M)


def file_client(command: Command) -> Steps:
    """`sftp host <<< 'put FILE'`, `tftp host -c put FILE`, `smbclient //host/x -c 'put FILE'`."""
    yield from copy_over_ssh(command)
    words = " ".join(command.argv[1:])
    texts = [command.stdin.text, *re.split(r"[;\n]|(?<=\s)-c\s|(?<=\s)-e\s", words)]
    for text in texts:
        for script in STARTS.findall(text):
            yield from as_typed(script)
        for match in SENDS.finditer(text):
            for file in match[1].replace("'", " ").replace('"', " ").split()[:8]:
                yield Found(Effect.READ, path=file)
    yield Found(Effect.UPLOAD, says="copy files between machines")


def copy_over_ssh(command: Command) -> Steps:
    """`scp -o ProxyCommand=CMD`, `scp -S CMD`."""
    line = command.read("-S -o -P -i -F -c -l -J -b -D")
    for script in (*line.value_of("-S"), *commands_of_ssh(line.value_of("-o"))):
        yield Script(script)


def talk(command: Command) -> Steps:
    """`openssl s_client -connect HOST < FILE`: the input is sent to another machine."""
    if any(re.match(r"(localhost|127\.|\[::1\])", word) for word in command.argv[1:]):
        return
    if "s_client" in command.argv[1:2] and command.stdin.origin.name not in ("NOTHING", "TEXT"):
        yield Found(Effect.UPLOAD, says="send data to another machine")
    elif "s_client" in command.argv[1:2]:
        yield Found(Effect.NETWORK, says="reach another machine over the network")


FETCHED_FILE = Flow(Origin.FETCHED)


def curl(command: Command) -> Steps:
    """`curl -o FILE URL`, `curl -O URL`."""
    yield from request(command)
    line = read_line(command.argv[1:], own_takes("curl"))
    files = list(line.value_of("-o", "--output"))
    if line.flags & {"-O", "--remote-name", "-J", "--remote-name-all"}:
        files += [_last_part(url) for url in line.operands]
    for file in files:
        yield Wrote(file, FETCHED_FILE)


def wget(command: Command) -> Steps:
    """`wget -O FILE URL`, `wget URL`, `wget -P FOLDER URL`; `aria2c` and `axel` are taken alike."""
    yield from request(command)
    line = read_line(command.argv[1:], own_takes("wget"))
    files = list(line.value_of("-O", "--output-document", *(["-o", "--out"] if command.name != "wget" else [])))
    folders = line.value_of("-P", "--directory-prefix", *(["-d", "--dir"] if command.name == "aria2c" else [])) or (
        ".",
    )
    files = files or [f"{folder}/{_last_part(url)}" for folder in folders for url in line.operands]
    for file in files:
        yield Wrote(file, FETCHED_FILE)


def copy(command: Command) -> Steps:
    """`cp A B`, `mv A B`, `ln A B`: the facts about A then hold for B."""
    line = command.read("-t --target-directory -S --suffix -m --mode -o --owner -g --group")
    folders = line.value_of("-t", "--target-directory")
    sources, target = (line.operands, folders[0]) if folders else (line.operands[:-1], "".join(line.operands[-1:]))
    if len(line.operands) == 1 and not folders and GLOB.search(target):
        yield Found(Effect.HISTORY_LOSS, says="replace the last of the files that a pattern stands for")
    for source in sources if command.name == "mv" else ():
        if target == "/dev/null":
            yield Found(Effect.DELETE_TREE, path=source)
        elif is_private(source):
            yield Found(Effect.READ, path=source, says="give {path}, which looks like a secret, another name")
    if command.name == "ln" and line.flags & {"-s", "--symbolic"}:
        for source in sources:
            folder = target.rpartition("/")[0] or "."
            behind = source if source.startswith(("/", "~", UNKNOWN)) else f"{folder}/{source}"
            yield Change(What.LINKED, (behind, target))
    for source in sources:
        for copied in (target, f"{target}/{_last_part(source)}"):
            yield Change(What.COPIED, (source, copied))


def tee(command: Command) -> Steps:
    """`tee FILE`: its input goes into files."""
    for file in command.read().operands:
        yield Wrote(file, command.stdin)


def _last_part(url: str) -> str:
    return url.partition("?")[0].rstrip("/").rpartition("/")[2]


CLONE_TAKES = frozenset("-b --branch --depth -o --origin -c --config --reference -j --filter -u".split())  # noqa: SIM905
REMOTE = pattern(r"^(?:(?:https?|git|ssh|ftp)://(?!localhost|127\.)|[\w.-]+@[\w.-]+:|gh:|[\w.-]+\.[a-z]+:)")


def clone(words: list[str]) -> Steps:
    """`git clone URL [FOLDER]`: the folder's content is code of another owner."""
    operands = read_line(words, CLONE_TAKES).operands
    if operands and REMOTE.match(operands[0]):
        name = operands[0].rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]
        yield Change(What.FETCHED, (operands[1] if len(operands) > 1 else name,))


def unpack(command: Command) -> Steps:
    """`tar xf FILE`, `unzip FILE`, `patch < FILE`: files in a folder come from an archive."""
    line = command.read("-f --file -C --directory -d")
    files = (*line.value_of("-f", "--file"), *line.operands)
    folders = line.value_of("-C", "--directory", "-d") or (".",)
    flows = [command.content(file) for file in files] + [command.stdin]
    if any(flow.origin is Origin.FETCHED for flow in flows):
        for folder in folders:
            yield Change(What.FETCHED, (folder,))


def builds(command: Command) -> Steps:
    """A build tool in, or on, a folder that the script has just downloaded."""
    if not command.files.fetched or not sign("builds").match(" ".join([command.name, *command.argv[1:3]])):
        return
    words = [".", *command.argv[1:]]
    if command.files.is_fetched(path for word in words for path in command.targets(word.removeprefix("-C"))):
        yield Found(Effect.RUN_CLONED_CODE, says="run code that was just cloned or downloaded")


def installs(command: Command) -> Steps:
    """`dpkg -i FILE`: a package that the script has just downloaded runs its installation scripts."""
    for word in command.argv[1:]:
        if command.content(word).origin is Origin.FETCHED:
            yield Found(Effect.RUN_FETCHED_CODE)
