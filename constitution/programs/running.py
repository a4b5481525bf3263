"""Programs that act on what runs: processes, services, schedules, and doors for others."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["RUNNING"]

RUNNING = (
    Program(
        "systemctl",
        [
            Does(
                Effect.SERVICES,
                words=r"^(stop|start|restart|reload|disable|enable|mask|unmask|kill|edit|set-default"
                r"|isolate|daemon-reload|try-restart|reload-or-restart|revert|link)$",
                says="change services",
            )
        ],
    ),
    Program(
        "service|rc-service|initctl",
        [Does(Effect.SERVICES, words=r"^(start|stop|restart|reload|force-reload)$", says="change services")],
    ),
    Program(
        "launchctl",
        [
            Does(
                Effect.SERVICES,
                words=r"^(load|unload|bootstrap|bootout|remove|submit|enable|disable|kickstart|kill)$",
                says="change services",
            )
        ],
    ),
    Program(
        "systemctl|launchctl|rc-update|loginctl",
        [
            Does(
                Effect.SCHEDULE,
                words=r"^(enable|link|edit|load|bootstrap|submit|add|enable-linger|add-wants|add-requires"
                r"|preset|set-property)$",
                says="have something start at every boot or login",
                match=("systemctl --user enable x", "launchctl load x.plist", "loginctl enable-linger me"),
                not_match=("systemctl status x", "launchctl list"),
            )
        ],
    ),
    Program(
        "supervisorctl|circusctl",
        [
            Does(
                Effect.SERVICES,
                words=r"^(restart|reload|reread|update|start)$",
                says="change services",
                match=("supervisorctl restart all", "circusctl reload"),
                not_match=("supervisorctl status",),
            )
        ],
    ),
    Program(
        "supervisorctl|pm2|sv|svc|s6-svc|monit|forever|immortalctl|overmind",
        [
            Does(
                Effect.SERVICES,
                words=r"^(stop|shutdown|kill|delete|remove|stopall|deleteall|startup|unstartup|down|exit|d)$",
                says="stop services",
                match=("supervisorctl stop all", "pm2 delete x", "pm2 startup"),
                not_match=("supervisorctl status", "pm2 list"),
            )
        ],
    ),
    Program(
        "update-rc.d|chkconfig|rc-update",
        [
            Does(
                Effect.SCHEDULE,
                words=r"^(defaults|enable|on|add|start)$",
                says="have something start at every boot",
                match=("update-rc.d x defaults", "chkconfig x on"),
                not_match=("chkconfig --list",),
            ),
            Does(
                Effect.SERVICES,
                words=r"^(off|remove|disable|del|stop|reset|--del)$",
                says="change services",
                match=("chkconfig x off", "update-rc.d x remove"),
                not_match=("chkconfig --list",),
            ),
        ],
    ),
    Program(
        "kill",
        [
            Does(Effect.KILL_ALL, given="-1", bare=True, says="end every process"),
            Does(Effect.KILL_ALL, words=r"^-?(1|-1)$", says="end every process"),
            Does(
                Effect.KILL_ALL,
                words=r"^\0(init|systemd|launchd|sshd|dockerd|containerd|ssh-agent|gpg-agent|dbus-daemon)$",
                says="end processes that everything needs",
                match=("kill -STOP $(pgrep sshd)", "kill $(pidof systemd)"),
                not_match=("kill $(cat server.pid)", "kill $!"),
            ),
            Does(Effect.KILL),
            Does(
                Effect.KILL_MATCHING,
                words=r"^\0[^\0]",
                says="end every process that fits",
                match=("kill $(pgrep -f node)", "kill -9 $(lsof -ti tcp:3000)"),
                not_match=("kill 1234", "kill %1", "kill $!", "kill $(cat x.pid)", "kill -HUP 12"),
            ),
        ],
        takes="-s -n",
        unless="-l -L",
        long_style=True,
    ),
    Program("killall5", [Does(Effect.KILL_ALL, says="end every process")]),
    Program(
        "pkill|killall|skill|slay",
        [
            Does(Effect.KILL_ALL, given="-u -U --user --euid", says="end every process of a user"),
            Does(
                Effect.KILL_MATCHING,
                words=".",
                unless="-0",
                says="end every process that fits",
                match=("pkill -f 'webpack serve'", "killall node"),
                not_match=("pkill -0 node", "pgrep node"),
            ),
            Does(
                Effect.KILL_ALL, words=r"^(\.|\.\*|init|systemd|sshd|\*|)$", says="end processes that everything needs"
            ),
            Does(Effect.KILL),
        ],
        takes="-s --signal -P",
        unless="-l --list",
    ),
    Program(
        "fuser",
        [Does(Effect.KILL_MATCHING, given="-k --kill", match=("fuser -k 80/tcp",), not_match=("fuser 80/tcp",))],
    ),
    Program(
        "crontab",
        [
            Does(
                Effect.SCHEDULE,
                unless="-l -e",
                says="change what runs on a schedule",
                match=("crontab x", "crontab -r"),
                not_match=("crontab -l",),
            ),
            Does(Effect.SERVICES, given="-e", says="change what runs on a schedule", match=("crontab -e",)),
        ],
        takes="-u",
    ),
    Program("atrm", [Does(Effect.SERVICES, words=".", says="delete what was to run later", match=("atrm 1",))]),
    Program(
        "telnetd|in.telnetd|rshd|in.rshd|rlogind|dropbear|sshd|x11vnc|vncserver|Xvnc|x0vncserver|xrdp|ttyd"
        "|gotty|shellinabox"
        "|shellinaboxd|wetty|tmate|upterm|teleconsole|rustdesk|anydesk|teamviewer|meshagent|tightvncserver",
        [
            Does(
                Effect.GIVE_SHELL,
                says="give others a shell on this machine",
                match=("telnetd -l /bin/sh -p 2323", "tmate", "ttyd bash", "dropbear -p 2222"),
                not_match=("sshd -t", "which sshd"),
            )
        ],
        unless="-t -T --version -V",
    ),
    Program(
        "gcore|procdump|makedumpfile|volatility|lime|avml|memdump",
        [
            Does(
                Effect.TAKE_KEYS,
                says="take what a process has in its memory",
                match=("gcore 12",),
                not_match=("which gcore",),
            )
        ],
    ),
    Program(
        "ssh-add",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=".",
                says="hand a key to the agent",
                match=("ssh-add key",),
                not_match=("ssh-add -l",),
            ),
            Does(
                Effect.SHOW_SECRETS,
                given="-L -D -e",
                says="show or drop keys",
                match=("ssh-add -L",),
                not_match=("ssh-add -l",),
            ),
        ],
    ),
    Program(
        "renice",
        [
            Does(
                Effect.KERNEL,
                words=r"^1$",
                says="change the priority of what everything needs",
                match=("renice -20 1",),
            )
        ],
        takes="-n --priority",
    ),
    Program(
        "systemd-run",
        [
            Does(
                Effect.SCHEDULE,
                given="--on-calendar --on-active --on-boot --on-startup --on-unit-active --on-unit-inactive",
                says="run something later, and again and again",
                match=(
                    "systemd-run --on-calendar=hourly ./x",
                    "systemd-run --on-active=60 ./x",
                    "systemd-run --on-boot=1 ./x",
                    "systemd-run --on-startup=1 ./x",
                    "systemd-run --on-unit-active=1 ./x",
                    "systemd-run --on-unit-inactive=1 ./x",
                ),
                not_match=("systemd-run --user ./x",),
            )
        ],
        long_style=True,
    ),
    Program("at|batch", [Does(Effect.SCHEDULE, unless="-l -c", says="run something later")], takes="-f -q"),
    Program(
        "screen",
        [
            Does(
                Effect.KILL_MATCHING,
                words=r"^(quit|kill)$",
                says="end whatever runs in a terminal",
                match=("screen -S x -X quit",),
                not_match=("screen -ls",),
            ),
        ],
    ),
    Program(
        "tmux kill-server",
        [
            Does(
                Effect.KILL_MATCHING,
                says="end whatever runs in its terminals",
                match=("tmux kill-server",),
                not_match=("tmux ls", "tmux kill-session -t dev"),
            )
        ],
    ),
    Program("stress|stress-ng|sysbench", [Does(Effect.EXHAUST, says="use up the machine")], unless="--version"),
    Program("enable", [Does(Effect.PRELOAD, "-f", says="load {path} into the shell")], takes="-f"),
    Program("hash", [Does(Effect.PRELOAD, "-p", says="put {path} behind another name")], takes="-p"),
    Program("complete", [], takes="-C", runs="-C"),
    Program("tcpdump", [], takes="-z", runs="-z"),
    Program("yes", []),
)
