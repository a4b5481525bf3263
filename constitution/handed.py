"""Secret files that are handed to a program, whatever it does with them: most programs can be made to show one."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["handed", "handed_in_code"]

EXEMPT = frozenset(
    """
    echo printf test [ [[ basename dirname realpath readlink which type command whereis
    grep egrep fgrep rg ag ack sed awk gawk mawk find fd ls tree stat cd pushd tmux direnv
    ssh scp sftp mosh autossh ssh-keygen ssh-add ssh-copy-id ssh-agent sshfs
    kind minikube k3d eksctl helmfile argocd flux stern velero istioctl skaffold tilt sam serverless sls cdk flyctl fly
    kubectl oc helm k9s kustomize aws gcloud az doctl terraform tofu pulumi ansible ansible-playbook docker podman vault
    npm pnpm yarn bun mvn mvnw gradle gradlew cargo pip twine composer bundle
    psql mysql mariadb pg_dump mysqldump rclone restic borg s3cmd certbot openvpn git hg gh glab make
    """.split()  # noqa: SIM905
)
"""They only name files, have rows for each way to read them, or are given keys to use them."""

SHOWN_BY_GIT = frozenset(["diff", "hash-object", "apply", "am", "add"])
GIVEN = re.compile(r"(?:^|[=:@,]|^-\w)((?:/|~)[^,:]*)")
QUOTED = re.compile(r"['\"]((?:/|~/)[^'\"\s\\]{1,200})['\"]")


def handed(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """Report each path among the words of a program."""
    if name in EXEMPT and not (name == "git" and SHOWN_BY_GIT.intersection(argv[1:2])):
        return
    elsewhere = walk.scope.cwd != (examination.discoveries.start,)
    for word in argv[1:]:
        if "/" in word or "~" in word or elsewhere:
            for path in _paths(word, elsewhere):
                examination.found(Effect.HANDLE, walk, program=name, path=path)


def _paths(word: str, elsewhere: bool) -> list[str]:
    if len(word) > 400 or " " in word:
        return []
    word = word.removeprefix("file://")
    if "://" in word:
        return []
    return GIVEN.findall(word) or ([word] if elsewhere and word[:1] != "-" else [])


def handed_in_code(examination: "Examination", name: str, code: str, walk: "Walk") -> None:
    """Report each path that stands in quotes within code of another language."""
    for path in QUOTED.findall(code)[:32]:
        examination.found(Effect.HANDLE, walk, program=name, path=path)
