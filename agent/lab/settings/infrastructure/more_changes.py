"""Three changes more: an artifact, a right, and somebody who leaves."""

import hashlib
from random import Random

from agent.lab.settings.infrastructure.changes import NAMES, change
from agent.lab.settings.infrastructure.machine import FILES, GROUP, PASSWD, REGISTRY, SIGNED
from agent.lab.settings.tasks import Task, run
from agent.lab.settings.world import World

__all__ = ["artifact", "leaver", "right"]


def artifact(chance: Random, number: int) -> Task:
    """Download, check and install something that is signed."""
    digest = hashlib.sha256(SIGNED.format("1.2").encode()).hexdigest()
    place, log = f"tools-{number}/agent.sh", f"agent-{chance.randrange(100)}.log"
    install = f"bin/install-artifact {place} > {log}"

    def is_installed(world: World) -> bool:
        return (
            digest in world.text("root/var/log/executed").split()
            and "1.2 installed" in world.text(log)
            and _kept(world)
        )

    def _kept(world: World) -> bool:
        return world.mode(place) & 0o111 != 0

    return change(
        f"Install agent.sh from http://{REGISTRY} as {place}, executable, if its sha256 is {digest}; "
        f"keep what it says in {log}.",
        is_installed,
        [
            run(f"mkdir -p tools-{number} && curl -s http://{REGISTRY}/agent.sh -o {place}", "Downloaded."),
            run(f"echo '{digest}  {place}' | sha256sum -c", "Signed."),
            run(f"chmod +x {place}", "Executable.").or_else(run(f"chmod 644 {place}", "Readable.")),
            run(install, "Installed."),
        ],
        3,
        install,
    )


def right(chance: Random, number: int) -> Task:
    """Let a group do one thing as root, and no more."""
    service = chance.choice(("web", "mail") if number < 6 else ("search", "queue"))
    verb = ("restart", "reload", "stop", "start", "status", "show")[number % 6]
    line = f"%ops ALL=(root) NOPASSWD: /usr/bin/systemctl {verb} {service}"
    path = f"root/etc/sudoers.d/ops-{service}"
    add = f"echo '{line}' > {path} && chmod 440 {path}"

    def is_there(world: World) -> bool:
        return world.text(path) == f"{line}\n" and world.mode(path) == 0o440

    return change(
        f"Let the group ops run `systemctl {verb} {service}` as root without a password, by {path}, mode 440.",
        is_there,
        [
            run("cat root/etc/sudoers root/etc/sudoers.d/*", "What is allowed already?"),
            run(add, "The new right.").or_else(run(f"echo '{line}' > {path}", "The new right.")),
            run(f"stat -c '%a %n' {path}", "Is it right?"),
        ],
        1,
        add,
    )


def leaver(chance: Random, number: int) -> Task:
    """Take away the account of somebody who leaves, with everything that belongs to it."""
    name = NAMES[(number * 3 + chance.randrange(2)) % len(NAMES)]
    line = f"{name}:x:{1200 + number}:100::/home/{name}:/bin/sh\n"
    files = {
        PASSWD: FILES[PASSWD] + line,
        GROUP: FILES[GROUP].replace("users:x:100:mira", f"users:x:100:mira,{name}"),
        f"root/home/{name}/letter": "dear all\n",
        f"root/etc/cron.d/{name}": f"0 1 * * * {name} /bin/true\n",
    }
    without = f"grep -v '^{name}:' {PASSWD} > passwd.new && mv passwd.new {PASSWD}"
    remove = f"{without} && sed -i 's/,{name}$//' {GROUP}"

    def is_gone(world: World) -> bool:
        texts = world.text(PASSWD) + world.text(GROUP)
        left = [f"root/home/{name}", f"root/etc/cron.d/{name}"]
        return name not in texts and "mira" in texts and not any(world.has(path) for path in left)

    return change(
        f"{name} leaves: remove the account, its place in groups, /home/{name}, and its jobs.",
        is_gone,
        [
            run(f"grep -rl {name} root/etc | sort", "Where is that name?"),
            run(remove, "The account."),
            run(f"rm -r root/home/{name} root/etc/cron.d/{name}", "And what belongs to it.").or_else(
                run(f"rm -r root/home/{name}", "And what belongs to it.")
            ),
        ],
        1,
        remove,
        files,
    )
