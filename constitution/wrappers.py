"""Programs that run other programs here: shells' own words, privileges, limits, watchers, terminals, environments."""

from constitution.effects import Effect
from constitution.remote_wrappers import REMOTE
from constitution.wrapper import Wrapper

__all__ = ["SUBCOMMANDS", "WRAPPERS"]

SUDO = """
    -u --user -g --group -h --host -p --prompt -C --close-from -T --command-timeout -U --other-user -R --chroot
    -D --chdir -r --role -t --type
"""
AS_ADMINISTRATOR, AS_ANOTHER = "run as the administrator", "run as another user"
BEHIND_ANOTHER_ROOT = "run behind another root"

PRIVILEGE = (
    Wrapper(
        "sudo|gsudo|sudoedit|please",
        SUDO,
        assignments=True,
        looks="-V --version",
        effect=Effect.PRIVILEGE,
        says=AS_ADMINISTRATOR,
        match=("sudo ls", "sudo -u me A=b ls", "sudo -l"),
        not_match=("echo sudo", "sudo --version", "sudo -V"),
    ),
    Wrapper("doas|dzdo|run0", "-u -C", effect=Effect.PRIVILEGE, says=AS_ADMINISTRATOR, match=("doas ls", "run0 ls")),
    Wrapper(
        "su",
        "-c --command --session-command",
        script="-c --command --session-command",
        instead=True,
        effect=Effect.PRIVILEGE,
        says=AS_ANOTHER,
        match=("su -", "su - me -c 'ls'"),
    ),
    Wrapper(
        "runuser",
        "-u --user -g --group -G --supp-group -c --command --session-command",
        script="-c --command --session-command",
        instead=True,
        effect=Effect.PRIVILEGE,
        says=AS_ANOTHER,
        match=("runuser -u me ls",),
    ),
    Wrapper(
        "pkexec|gosu|su-exec|setpriv|capsh|chpst|s6-setuidgid|setuidgid|runcon|newgrp|sg|machinectl shell",
        "--user",
        effect=Effect.PRIVILEGE,
        says=AS_ANOTHER,
        match=("pkexec ls", "gosu me ls", "newgrp docker", "sg docker -c ls", "setpriv --reuid 0 ls"),
    ),
    Wrapper(
        "chroot|jexec",
        "--userspec --groups",
        skip=1,
        effect=Effect.PRIVILEGE,
        says=BEHIND_ANOTHER_ROOT,
        match=("chroot /mnt ls",),
    ),
    Wrapper(
        "nsenter|unshare|systemd-nspawn|schroot",
        "-t --target -S -G -R --root -D --directory -M --machine",
        effect=Effect.PRIVILEGE,
        says=BEHIND_ANOTHER_ROOT,
        match=("nsenter -t 1 -m sh", "unshare -r sh"),
    ),
)

IN_THE_SHELL = (
    Wrapper(
        "env",
        "-u --unset -C --chdir -S",
        script="-S --split-string",
        assignments=True,
        typed=True,
        match=(
            "env A=b rm -rf ~",
            "env -u A rm -rf ~",
            "env -S 'rm -rf /home/me'",
            "env - A=b rm -rf ~",
            "env /bin/sh",
        ),
        not_match=("env A=b ls", "echo ls | env bash", "env bash -c ls"),
    ),
    Wrapper("builtin|noglob|nocorrect|coproc", match=("builtin rm -rf ~",), not_match=("builtin cd x",)),
    Wrapper(
        "command", looks="-v -V", by_shell=True, match=("command -p rm -rf ~",), not_match=("command -v rm -rf ~",)
    ),
    Wrapper("exec", "-a", match=("exec -a ls rm -rf ~",), not_match=("exec ls",)),
    Wrapper("time", "-f --format -o --output", by_shell=True, match=("\\time -f x rm -rf ~",), not_match=("time ls",)),
    Wrapper("gtime", "-f --format -o --output", match=("gtime -o x rm -rf ~",)),
    Wrapper("eval", joins=True, match=("eval rm -rf '~'",), not_match=("eval ls",)),
    Wrapper(
        "busybox|toybox|eval-toybox",
        typed=True,
        match=("busybox rm -rf ~", "busybox sh"),
        not_match=("busybox ls", "busybox sh -c ls"),
    ),
)

LIMITS = (
    Wrapper(
        "timeout|gtimeout",
        "-k --kill-after -s --signal",
        skip=1,
        typed=True,
        match=("timeout -k 1 -s 9 5 rm -rf ~", "timeout 7d /bin/sh"),
        not_match=("timeout 5 sh x.sh", "timeout 5 bash <<< ls"),
    ),
    Wrapper(
        "nice|gnice",
        "-n --adjustment",
        typed=True,
        match=("nice -n 5 rm -rf ~", "nice /bin/sh"),
        not_match=("nice make", "nice sh x.sh"),
    ),
    Wrapper(
        "setarch",
        loose=True,
        typed=True,
        match=("setarch x86_64 rm -rf ~", "setarch -R sh"),
        not_match=("setarch -R make",),
    ),
    Wrapper(
        "logsave", skip=1, typed=True, match=("logsave x rm -rf ~", "logsave x sh -i"), not_match=("logsave x make",)
    ),
    Wrapper(
        "nohup|setsid|unbuffer|rlwrap|fakeroot|catchsegv|dbus-run-session|caffeinate|chronic|torsocks|torify"
        "|eatmydata|aoss|linux32|linux64|winpty|ccache|sccache|distcc|tini|dumb-init|catatonit|tsocks"
        "|ssh-agent|fakechroot|authbind|dbus-launch|retry|ts-node-dev|wine|faketime|detach|daemon",
        typed=True,
        match=("nohup rm -rf ~", "setsid rm -rf ~", "tini -- rm -rf ~", "ssh-agent rm -rf ~", "nohup /bin/sh"),
        not_match=("nohup make", "ccache gcc -c x.c", "ssh-agent -s", "nohup sh x.sh"),
    ),
    Wrapper(
        "stdbuf",
        "-i --input -o --output -e --error",
        typed=True,
        match=("stdbuf -o L rm -rf ~", "stdbuf -i0 /bin/sh"),
        not_match=("stdbuf -o L ls",),
    ),
    Wrapper(
        "ionice",
        "-c -n --classdata -p --pid",
        typed=True,
        match=("ionice -c 3 rm -rf ~", "ionice /bin/sh"),
        not_match=("ionice -c 3 make",),
    ),
    Wrapper(
        "chrt|taskset",
        skip=1,
        typed=True,
        match=("taskset 1 rm -rf ~", "taskset -c 0 rm -rf ~", "taskset 1 sh"),
        not_match=("taskset 1 make", "taskset -c 0 pytest"),
    ),
    Wrapper(
        "numactl|cgexec|trickle|softlimit",
        "-C -N -m -i -p -g -d -u",
        typed=True,
        match=("numactl -N 0 rm -rf ~", "cgexec -g a:b rm -rf ~", "numactl -N 0 sh"),
        not_match=("numactl -N 0 -m 0 ./a.out",),
    ),
    Wrapper(
        "systemd-run",
        "-u --unit -p --property -E --setenv -H --host -M --machine --uid --gid --slice --description",
        typed=True,
        match=("systemd-run --user -p A=b rm -rf ~", "systemd-run -t /bin/sh"),
        not_match=("systemd-run --user make", "systemd-run --user sh x.sh"),
    ),
    Wrapper(
        "prlimit|cpulimit|choom|daemonize|start-stop-daemon|systemd-inhibit",
        loose=True,
        typed=True,
        match=(
            "start-stop-daemon --start --exec /bin/rm -- -rf ~",
            "start-stop-daemon -n x -S -x /bin/sh",
            "prlimit --nofile=5 rm -rf ~",
        ),
        not_match=("prlimit --nofile=5 make",),
    ),
    Wrapper(
        "flock",
        "-w --timeout -E -c --command",
        skip=1,
        script="-c --command",
        instead=True,
        typed=True,
        match=("flock x rm -rf ~", "flock -w 1 x -c 'rm -rf ~'", "flock -u x /bin/sh"),
        not_match=("flock x make", "flock x sh x.sh"),
    ),
    Wrapper(
        "firejail|bwrap|proot|proxychains|proxychains4|xvfb-run|apptainer|singularity|sshpass|fakeroot-ng|ns|sandbox"
        "|sandbox-exec|minijail0|nsjail|toolbox|distrobox|scl|flatpak-spawn|qemu-x86_64|qemu-aarch64",
        loose=True,
        match=("bwrap --bind / / rm -rf /home/me", "proot -r / rm -rf /home/me", "xvfb-run -a rm -rf ~"),
        not_match=("bwrap --ro-bind / / ls", "xvfb-run -a pytest"),
    ),
    Wrapper("ip netns exec", skip=1, match=("ip netns exec blue rm -rf ~",)),
    Wrapper(
        "ld-linux-x86-64.so.2|ld.so|ld-linux.so.2|ld-musl-x86_64.so.1",
        "--library-path --preload --argv0",
        match=("/lib64/ld-linux-x86-64.so.2 --argv0 x /bin/rm -rf ~",),
    ),
)

WATCHERS = (
    Wrapper(
        "watch|viddy",
        "-n --interval",
        joins=True,
        match=("watch -n 1 'rm -rf ~'", "watch -d rm -rf '~'"),
        not_match=("watch ls",),
    ),
    Wrapper(
        "strace",
        "-o -e -p --pid -s -E -u -P -a -I -O -S -X -b",
        typed=True,
        match=("strace -f -o x rm -rf ~", "strace -o x /bin/sh"),
        not_match=("strace -c ls", "strace -p 12", "strace sh x.sh"),
    ),
    Wrapper(
        "ltrace|dtruss|truss",
        "-o -p -n -x -l",
        typed=True,
        match=("ltrace -S rm -rf ~", "ltrace /bin/sh"),
        not_match=("ltrace -S ls", "truss -p 12"),
    ),
    Wrapper(
        "valgrind|heaptrack|gdb|lldb|bpftrace|scalene|operf|kernprof",
        loose=True,
        match=("gdb --args rm -rf ~", "lldb -- rm -rf ~", "valgrind --tool=x rm -rf ~"),
        not_match=("gdb --args ./a.out", "valgrind ./a.out"),
    ),
    Wrapper(
        "perf|py-spy|memray|rr|trace-cmd|uftrace|samply|coverage|mprof|xctrace|austin",
        skip=1,
        loose=True,
        match=("perf stat -e cycles rm -rf ~", "rr record rm -rf ~", "py-spy record -o x -- rm -rf ~"),
        not_match=("perf record -g ./a.out", "py-spy record -o x.svg -- python x.py", "perf stat ls"),
    ),
    Wrapper(
        "hyperfine|concurrently|npm-run-all|run-p|run-s",
        "-p -c -s",
        scripts=True,
        script="-p --prepare -c --cleanup -s --setup",
        match=("hyperfine 'rm -rf ~'", "hyperfine -p 'rm -rf ~' ls", "concurrently 'npm start' 'rm -rf ~'"),
        not_match=("hyperfine 'ls' 'ls -l'",),
    ),
    Wrapper("entr", match=("ls | entr -r rm -rf ~", "ls | entr -s 'rm -rf ~'"), not_match=("ls | entr -c pytest",)),
    Wrapper(
        "nodemon",
        "-e --ext -w --watch -i --ignore -s --signal -d --delay",
        script="--exec",
        match=("nodemon -e js -x 'rm -rf ~'",),
        not_match=("nodemon app.js",),
    ),
    Wrapper(
        "watchexec|reflex",
        "-e --exts -w --watch -f --filter -i --ignore -s --signal -d -g",
        dashes=True,
        match=("watchexec -w src rm -rf ~", "watchexec -r rm -rf ~", "reflex -r x -- rm -rf ~"),
        not_match=("watchexec -r pytest",),
    ),
    Wrapper(
        "cargo-watch|chokidar|onchange|when-changed|inotifyrun|guard|wach",
        "-w -i -s --shell -c --command",
        script="-s --shell -c --command",
        instead=True,
        dashes=True,
        match=("cargo-watch -s 'rm -rf ~'", "onchange '*.js' -- rm -rf ~", "chokidar '*.js' -c 'rm -rf ~'"),
        not_match=("onchange '*.js' -- make",),
    ),
)

TERMINALS = (
    Wrapper(
        "script",
        "-c --command -o -m -T -I -O -B -E",
        skip=1,
        script="-c --command",
        instead=True,
        typed=True,
        match=("script -qc 'rm -rf ~' x", "script -q x -c /bin/sh", "script -q x rm -rf ~"),
        not_match=("script -qc ls x",),
    ),
    Wrapper(
        "xterm|urxvt|rxvt|konsole|alacritty|st|foot|kitty|gnome-terminal|xfce4-terminal|mate-terminal|terminator|tilix"
        "|wezterm|x-terminal-emulator|lxterminal|zellij|abduco|dtach|byobu",
        loose=True,
        script="--command",
        match=("xterm -T x -e rm -rf ~", "gnome-terminal -- rm -rf ~", "dtach -n s rm -rf ~"),
        not_match=("xterm", "kitty"),
    ),
)

ENVIRONMENTS = (
    Wrapper(
        "npx|bunx|pnpx|npm exec|npm x|bun x|pnpm dlx|yarn dlx",
        "-p --package -w --workspace",
        script="--call",
        match=("npx -c 'rm -rf ~'", "npx rimraf ~", "npm exec -c 'rm -rf ~'", "npm exec -- rm -rf ~"),
        not_match=("npx prettier --write .", "npm exec prettier ."),
    ),
    Wrapper(
        "uv|pipx|poetry|pipenv|pdm|hatch|rye|conda|mamba|micromamba|direnv|dotenv|aws-vault|doppler|op|bundle"
        "|pnpm|yarn|nix|mise"
        "|asdf|rtk|opam|stack|chamber|teller|infisical|envchain|sops|vaultenv|envdir|rbenv|pyenv|nodenv|volta"
        "|fnm|cabal",
        "--with -p --python -n --name --project --directory --group --extra --env-file -f -c",
        only="run exec x",
        dashes=True,
        script="-c --command",
        match=(
            "uv run rm -rf ~",
            "poetry run rm -rf ~",
            "op run -- rm -rf ~",
            "conda run -n x rm -rf ~",
            "aws-vault exec p -- rm -rf ~",
        ),
        not_match=("uv run pytest", "bundle exec rspec", "poetry add x"),
    ),
    Wrapper(
        "nix-shell",
        "--command --run",
        script="--run --command",
        instead=True,
        match=("nix-shell -p x --run 'rm -rf ~'",),
        not_match=("nix-shell -p hello --run hello",),
    ),
    Wrapper(
        "nix develop|nix shell",
        loose=True,
        match=("nix shell nixpkgs#x -c rm -rf ~", "nix develop --command rm -rf ~"),
        not_match=("nix develop -c make",),
    ),
    Wrapper(
        "sops exec-env|sops exec-file",
        skip=1,
        match=("sops exec-env x 'rm -rf ~'",),
        not_match=("sops exec-env x make",),
    ),
    Wrapper(
        "cross-env|env-cmd|dotenvx|dotenv-cli|with-contenv|cross-env-shell",
        "-f -e",
        assignments=True,
        dashes=True,
        match=("cross-env A=b rm -rf ~",),
        not_match=("cross-env NODE_ENV=test jest",),
    ),
    Wrapper(
        "pixi|devbox|flox|devenv|pkgx|guix",
        "-e --environment --manifest-path",
        only="run exec activate shell",
        match=(
            "pixi run rm -rf ~",
            "pixi exec rm -rf ~",
            "flox activate -- rm -rf ~",
            "flox activate -c 'rm -rf ~'",
            "devenv shell rm -rf ~",
        ),
        not_match=("pixi run test", "flox activate", "pixi shell"),
    ),
    Wrapper(
        "srun|mpirun|mpiexec|mpiexec.hydra|orterun|prun|aprun|jsrun|torchrun|accelerate|deepspeed|horovodrun|ibrun"
        "|flux run",
        loose=True,
        match=("srun -N 1 psql -c 'DROP TABLE x'", "mpirun -np 4 dropdb x"),
        not_match=("srun -N 1 hostname", "mpirun -np 4 ./a.out", "torchrun --nproc_per_node 2 train.py"),
    ),
    Wrapper(
        "uvx|uv tool run", "--with --from -p --python --spec", match=("uvx rm -rf ~",), not_match=("uvx ruff check .",)
    ),
)

TABLE = (*PRIVILEGE, *IN_THE_SHELL, *LIMITS, *WATCHERS, *TERMINALS, *ENVIRONMENTS, *REMOTE)

WRAPPERS: dict[str, Wrapper] = {}
for _wrapper in TABLE:
    for _name in _wrapper.names:
        WRAPPERS.setdefault(_name, _wrapper)

SUBCOMMANDS = frozenset(name.split()[0] for name in WRAPPERS if " " in name)
"""Programs that run another one behind one of their subcommands only."""
