"""Programs that run other programs: the table that says where, in their words, the other command begins.

Wrapper("timeout", takes="-k -s", skip=1)     # timeout -k 5 60 rm x   ->   rm x
Wrapper("su", takes="-s", script="-c")        # su -c 'rm x'           ->   the script: rm x
"""

from attrs import field, frozen

from constitution.effects import Effect
from constitution.programs.options import read_line

__all__ = ["SHELLS", "WRAPPERS", "Wrapper", "unwrap"]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Wrapper:
    """A row. `takes`: options with a value; `skip`: operands before the command; `script`: options whose value is shell
    text; `joins`: the operands are joined to shell text; `only`: it runs a command only behind this subcommand;
    `by_shell`: the shell itself runs it, so that functions and aliases count; `instead`: a script takes the place of a
    command.
    """

    names: tuple[str, ...] = field(converter=_names)
    takes: frozenset[str] = field(default="", converter=_set)
    skip: int = 0
    script: tuple[str, ...] = field(default="", converter=_words)
    joins: bool = False
    assignments: bool = False
    looks: frozenset[str] = field(default="", converter=_set)  # options that only look
    only: frozenset[str] = field(default="", converter=_set)
    by_shell: bool = False
    instead: bool = False
    effect: Effect | None = None
    says: str = ""


SUDO = """
    -u --user -g --group -h --host -p --prompt -C --close-from -T --command-timeout -U --other-user -R --chroot
    -D --chdir -r --role -t --type
"""
STARTING = ("ProxyCommand=", "LocalCommand=", "KnownHostsCommand=")
"""Options of ssh that run a command here."""

ELSEWHERE = "run commands on another machine"

TABLE = (
    Wrapper(
        "sudo|gsudo|sudoedit|please", SUDO, assignments=True, effect=Effect.PRIVILEGE, says="run as the administrator"
    ),
    Wrapper("doas|dzdo", "-u -C", effect=Effect.PRIVILEGE, says="run as the administrator"),
    Wrapper(
        "su|runuser",
        "-s --shell -g --group -G -w",
        script="-c --command --session-command",
        instead=True,
        effect=Effect.PRIVILEGE,
        says="run as another user",
    ),
    Wrapper("pkexec|gosu|su-exec|setpriv|capsh", "--user", effect=Effect.PRIVILEGE, says="run as another user"),
    Wrapper(
        "chroot|nsenter|unshare",
        "-t --target -S -G --userspec --groups",
        skip=1,
        effect=Effect.PRIVILEGE,
        says="run behind another root",
    ),
    Wrapper("env", "-u --unset -C --chdir -S --split-string", script="-S --split-string", assignments=True),
    Wrapper("timeout|gtimeout", "-k --kill-after -s --signal", skip=1),
    Wrapper("nice|gnice", "-n --adjustment"),
    Wrapper(
        "nohup|setsid|unbuffer|rlwrap|fakeroot|catchsegv|dbus-run-session|caffeinate|chronic|torsocks|torify|proxychains"
        "|proxychains4|eatmydata|firejail|bwrap|aoss|linux32|linux64|setarch|winpty|xvfb-run|ccache|sccache|distcc"
    ),
    Wrapper("builtin|noglob|nocorrect|coproc"),
    Wrapper("command", looks="-v -V", by_shell=True),
    Wrapper("exec", "-a", by_shell=True),
    Wrapper("time", "-f --format -o --output", by_shell=True),
    Wrapper("gtime", "-f --format -o --output"),
    Wrapper("stdbuf", "-i --input -o --output -e --error"),
    Wrapper("ionice", "-c --class -n --classdata -p --pid"),
    Wrapper("chrt|taskset|numactl|cgexec", "-c -p -g -C -m -N -i", skip=1),
    Wrapper("systemd-run|prlimit|cpulimit|choom|daemonize|start-stop-daemon", "-p --property --unit -u -l -n -t"),
    Wrapper("flock", "-w --timeout -E -c --command", skip=1, script="-c --command", instead=True),
    Wrapper("watch", "-n --interval -d -s", joins=True),
    Wrapper("strace|ltrace|dtruss", "-o -e -p -s -E -u -P -a -I -O -S -X -b"),
    Wrapper("script", "-c --command -t -o -m -T -I -O -B -E", script="-c --command"),
    Wrapper("busybox|toybox|eval-toybox"),
    Wrapper(
        "parallel|sem|rush", "-j --jobs -a --arg-file -I -S --sshlogin --colsep -N -n -L --delay --timeout", joins=True
    ),
    Wrapper("eval", joins=True),
    Wrapper(
        "ssh|mosh|autossh|pssh|et",
        "-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w -B",
        skip=1,
        joins=True,
        looks="-V -Q -G",
        effect=Effect.REMOTE_SHELL,
        says=ELSEWHERE,
    ),
    Wrapper("npx|bunx|pnpx", "-p --package -c --call -w --workspace", script="-c --call"),
    Wrapper(
        "uv|pipx|poetry|pipenv|pdm|hatch|rye|conda|mamba|direnv|dotenv|aws-vault|doppler|op|bundle|pnpm|yarn|nix|nix-shell|mise|asdf|rtk"
        "|dbus-launch|cargo-watch|opam|stack",
        "--with -p --python -n --name --project --directory --group --extra --env-file -f",
        only="run exec x tool",
    ),
    Wrapper("uvx", "--with --from -p --python --spec"),
    Wrapper("entr|nodemon|watchexec|reflex", "-e -w -x --exec -i --ext", script="-x --exec"),
    Wrapper("ld-linux-x86-64.so.2|ld.so|ld-linux.so.2", "--library-path --preload --argv0"),
)

WRAPPERS: dict[str, Wrapper] = {name: wrapper for wrapper in TABLE for name in wrapper.names}

SHELLS = frozenset(
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "oksh", "yash", "pwsh"]
)


def unwrap(wrapper: Wrapper, words: list[str]) -> tuple[list[str], list[str]]:
    """Return the command inside (empty when there is none) and the scripts in option values."""
    line = read_line(words, wrapper.takes, to_operand=True)
    if line.flags & wrapper.looks:
        return [], []
    scripts = list(line.value_of(*wrapper.script))
    scripts += [value.partition("=")[2] for value in line.value_of("-o") if value.startswith(STARTING)]
    inner = list(line.operands)
    if wrapper.only:
        if not inner or inner[0] not in wrapper.only:
            return [], scripts
        inner = list(read_line(inner[1:], wrapper.takes, to_operand=True).operands)
    if wrapper.assignments:
        while inner and (inner[0] == "-" or "=" in inner[0]):  # whatever the name: `env` takes any
            inner.pop(0)
    return [] if wrapper.instead and scripts else inner[wrapper.skip :], scripts
