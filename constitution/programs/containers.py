"""Programs that run containers: what is lost with them, and what gets out of them."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["CONTAINERS"]

ENGINES = ("docker", "podman", "nerdctl", "finch")
DELETES = "delete containers, images or volumes"
MACHINE = "give a container the machine"

HOST_FOLDERS = (
    r"(^|src=|source=)(/|/(etc|root|boot|proc|sys|dev|lib|bin|sbin|usr)(/[^:,]*)?|/(run|var)(/(run|lib|log"
    r"|spool)[^:,]*)?"
    r"|~|/(home|Users)(/[^/:,]+)?(/\.(ssh|gnupg|aws|azure|kube|config|docker|netrc|mozilla|password-store)[^:,]*)?)"
    r"/?(:|,|$)|docker\.sock|containerd\.sock|podman\.sock"
)
"""Folders of the machine that a container must not have."""


def _of_engines(parts: tuple[str, ...], verbs: tuple[str, ...]) -> str:
    """Return the names of all engines with each part and verb: "docker volume rm|docker volume prune|..."."""
    return "|".join(f"{engine}{part} {verb}" for engine in ENGINES for part in parts for verb in verbs)


CONTAINERS = (
    Program(
        _of_engines(
            (
                "",
                " container",
                " image",
                " volume",
                " network",
                " system",
                " builder",
                " buildx",
                " pod",
                " config",
                " secret",
            ),
            ("rm", "rmi", "prune", "kill", "remove"),
        ),
        [
            Does(
                Effect.CONTAINER_LOSS,
                says=DELETES,
                match=("docker rm x", "podman volume rm x", "nerdctl system prune"),
                not_match=("docker run --rm x", "docker ps"),
            )
        ],
    ),
    Program(
        _of_engines(("", " container", " volume", " image"), ("rm", "kill", "rmi")),
        [
            Does(
                Effect.CONTAINER_DATA_LOSS,
                words="^\0|^\\*$",
                says="delete whatever there is in containers",
                match=("docker volume rm $(docker volume ls -q)", "docker ps -aq | xargs docker rm -f"),
                not_match=("docker rm x",),
            ),
            Does(
                Effect.CONTAINER_DATA_LOSS,
                given="-a --all",
                says="delete whatever there is in containers",
                match=("podman volume rm --all", "podman rm -af"),
                not_match=("podman ps -a",),
            ),
        ],
    ),
    Program(
        _of_engines((" volume",), ("prune", "rm", "remove")) + "|" + _of_engines((" system",), ("reset",)),
        [
            Does(
                Effect.CONTAINER_DATA_LOSS,
                says="delete volumes and what is in them",
                match=("docker volume prune -f", "podman system reset --force", "docker volume rm x"),
                not_match=("docker volume ls",),
            )
        ],
    ),
    Program(
        _of_engines(("", " container"), ("stop", "kill", "restart", "pause")),
        [
            Does(
                Effect.SERVICES,
                words="^\0",
                says="stop whatever runs in containers",
                match=("docker stop $(docker ps -q)",),
                not_match=("docker stop web",),
            )
        ],
    ),
    Program(
        _of_engines((" system",), ("prune",)),
        [
            Does(
                Effect.CONTAINER_DATA_LOSS,
                given="--volumes",
                says="delete volumes and what is in them",
                match=("docker system prune -af --volumes",),
                not_match=("docker system df",),
            )
        ],
    ),
    Program(
        _of_engines(
            (" stack", " service", " node", " plugin", " context", " machine"),
            ("rm", "remove", "demote", "down", "disable"),
        )
        + "|docker swarm leave|docker swarm init|docker swarm ca|podman machine reset|podman kube down|podman pod rm",
        [
            Does(
                Effect.CONTAINER_DATA_LOSS,
                says="take a service or a machine out of the cluster",
                match=("docker swarm leave --force", "docker stack rm x", "docker service rm x", "docker node rm x"),
                not_match=("docker service ls", "docker node ls"),
            )
        ],
    ),
    Program(
        "docker compose|docker-compose|podman-compose|podman compose",
        [
            Does(
                Effect.CONTAINER_LOSS,
                words=r"^down$",
                given="--rmi",
                says="delete images",
                match=("docker-compose down --rmi all", "docker compose down --rmi local"),
                not_match=("docker compose down", "docker compose up"),
            ),
            Does(
                Effect.CONTAINER_LOSS,
                first=r"^(rm|kill)$",
                says="delete containers",
                match=("docker compose rm -sf", "docker compose kill"),
                not_match=("docker compose stop", "docker compose exec app rm -rf x"),
            ),
            Does(
                Effect.CONTAINER_DATA_LOSS,
                first=r"^(down|rm)$",
                given="-v --volumes",
                says="delete volumes and what is in them",
                match=("docker compose down -v", "docker-compose down --volumes", "docker compose rm -v"),
                not_match=("docker compose down", "docker compose run -v ./a:/a x"),
            ),
        ],
        takes="-p --project-name --profile -f --file --env-file",
    ),
    Program(
        "docker|podman|nerdctl|buildah|docker-compose|finch",
        [],
        takes="-H --host -c --context -l --log-level --config",
    ),
    Program("buildah bud|ko build"),
    Program(
        "docker run|docker create|docker exec|podman run|podman exec|podman create|nerdctl run|docker container run"
        "|docker compose run|docker-compose run|docker compose exec|docker-compose exec|finch run|nerdctl exec"
        "|docker update"
        "|docker service create",
        [
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--privileged --device",
                says=MACHINE,
                match=("docker run --privileged x", "docker exec --privileged x sh", "docker run --device /dev/sda x"),
                not_match=("docker run x",),
            ),
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--cap-add",
                values=r"(?i)^(cap_)?(all|sys_admin|sys_ptrace|sys_module|dac_override|dac_read_search"
                r"|net_admin|sys_rawio|bpf)$",
                says=MACHINE,
                match=("docker run --cap-add=SYS_ADMIN x", "docker run --cap-add ALL x"),
                not_match=("docker run --cap-drop ALL x",),
            ),
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--security-opt",
                values=r"unconfined|disable",
                says=MACHINE,
                match=("docker run --security-opt apparmor=unconfined x",),
                not_match=("docker run --security-opt no-new-privileges x",),
            ),
            Does(
                Effect.CONTAINER_ESCAPE,
                given="-v --volume --mount",
                says=MACHINE,
                values=HOST_FOLDERS,
                match=(
                    "docker run -v /:/x y",
                    "docker run --mount type=bind,src=/etc,dst=/x y",
                    "docker run -v ~:/x y",
                ),
                not_match=("docker run -v ./a:/a y", "docker run -v data:/var/lib/x y"),
            ),
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--pid --ipc --userns --uts --cgroupns",
                values="^host$",
                says=MACHINE,
                match=("docker run --pid host x", "docker run --pid=host x"),
                not_match=("docker run --ipc=private x",),
            ),
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--net --network",
                values="^host$",
                says=MACHINE,
                match=("docker run --network host x",),
                not_match=("docker run --network none x",),
            ),
        ],
        takes="-v --volume --mount --pid --ipc --userns --uts --cgroupns --network --cap-add --security-opt",
    ),
    Program(
        "lxc config device|incus config device|lxc profile device",
        [
            Does(
                Effect.CONTAINER_ESCAPE,
                words=r"^(source|path)=/(etc|root|home|usr|boot|dev|proc|sys)?(/|$)",
                also="^add$",
                says=MACHINE,
                match=("lxc config device add c1 host disk source=/ path=/mnt",),
                not_match=("lxc config device add c1 www disk source=./www path=/srv", "lxc config device list c1"),
            )
        ],
    ),
    Program(
        "crictl rm|crictl rmp|crictl stopp|crictl rmi|ctr containers delete|ctr tasks kill|ctr images rm",
        [
            Does(
                Effect.CONTAINER_DATA_LOSS,
                words="^\0",
                says="delete whatever there is in containers",
                match=("crictl rm $(crictl ps -aq)", "ctr containers delete $(ctr c ls -q)"),
                not_match=("crictl ps",),
            ),
            Does(
                Effect.CONTAINER_DATA_LOSS,
                given="-a --all --prune",
                says="delete whatever there is in containers",
                match=("crictl rmp -fa", "crictl rm --all", "crictl rmi --prune"),
                not_match=("crictl ps -a",),
            ),
            Does(
                Effect.CONTAINER_LOSS,
                words=".",
                says=DELETES,
                match=("crictl rm x", "ctr images rm x"),
                not_match=("crictl ps", "ctr images ls"),
            ),
        ],
    ),
    Program("ctr", [], takes="-n --namespace -a --address"),
    Program(
        "docker inspect|podman inspect|docker container inspect",
        [
            Does(
                Effect.SHOW_SECRETS,
                given="-f --format",
                values=r"Env",
                says="show the environment of a container",
                match=("docker inspect -f '{{.Config.Env}}' x",),
                not_match=("docker inspect x",),
            )
        ],
        takes="-f --format",
    ),
    Program(
        "docker cp|podman cp|nerdctl cp|docker container cp",
        [
            Does(
                Effect.READ,
                "first",
                words=r"^[^:]+$",
                match=("docker cp .env x:/y",),
                not_match=("docker cp -h",),
            ),
            Does(
                Effect.WRITE,
                "last",
                first=r"^[^/.]+:",
                match=("docker cp web:/x /usr/local/bin/x",),
                not_match=("docker cp x.conf web:/etc/x",),
            ),
        ],
    ),
    Program(
        "docker save|docker export|podman save|podman export|docker image save",
        [Does(Effect.WRITE, "-o --output", match=("docker save -o /etc/x y",), not_match=("docker save --help",))],
        takes="-o --output",
    ),
)
