"""Programs that change settings which every project of the user, or of the machine, obeys."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["PREFERENCES"]

CHANGES = "change settings for every project"
TOOLS = "change tools for every project"

PREFERENCES = (
    Program(
        "conda config|mamba config|micromamba config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="--add --set --append --prepend --remove-key --write-default --system --stdin",
                unless="--env --file --help -h --show --show-sources",
                says=CHANGES,
                match=("conda config --add channels x", "conda config --system --set a b"),
                not_match=("conda config --show", "conda config --env --add channels x"),
            )
        ],
    ),
    Program(
        "pip config|pip3 config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words="^(set|unset|edit)$",
                unless="--site --help -h",
                says=CHANGES,
                match=("pip config set global.timeout 60", "pip config --global unset global.x"),
                not_match=("pip config list", "pip config --site set global.timeout 60"),
            )
        ],
    ),
    Program(
        "npm config|yarn config|pnpm config|npm set|bun config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="-g --global --location -H --home",
                unless="--help -h",
                words="^(set|delete|unset|rm|edit|fix)$|=",
                says=CHANGES,
                match=("npm config set -g fund false", "yarn config set -g x y", "npm config set --global x y"),
                not_match=("npm config get x", "npm config list -g"),
            ),
        ],
        takes="--location",
    ),
    Program(
        "git config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="--global --system",
                besides="--unset-all --replace-all --add --edit -e --remove-section --rename-section",
                says=CHANGES,
                match=("git config --global --unset user.email", "git config --system -e"),
                not_match=("git config --unset user.email", "git config --global --list"),
            )
        ],
    ),
    Program(
        "poetry config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(pypi-token|http-basic|certificates|repositories)\.",
                unless="--list --help -h --local",
                says=CHANGES,
                match=("poetry config pypi-token.pypi x", "poetry config http-basic.x u p"),
                not_match=("poetry config --list", "poetry config virtualenvs.in-project true"),
            )
        ],
    ),
    Program(
        "bundle config|composer config|flutter config|az configure|xcode-select|mise use|dotnet tool|yarn global"
        "|composer global|jupyter labextension|nuget config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="-g --global -s --switch --reset --enable-web --enable-linux-desktop --enable-macos-desktop"
                " --enable-windows-desktop --no-enable-web --jdk-dir --android-sdk --no-analytics --defaults -d",
                unless="--list --help -h -l --get",
                words=r"^(?!list$|search$)|^$",
                says=CHANGES,
                match=("bundle config set --global path x", "composer config -g x y", "dotnet tool install -g x"),
                not_match=("bundle config set --local path x", "dotnet tool list -g"),
            ),
            Does(
                Effect.CONFIGURE_TOOL,
                bare=True,
                given="-s --switch --reset --enable-web --enable-linux-desktop --no-analytics --defaults -d",
                says=CHANGES,
                match=("flutter config --enable-web", "az configure --defaults group=x"),
                not_match=("flutter config", "az configure --list-defaults"),
            ),
        ],
        takes="--jdk-dir --android-sdk",
    ),
    Program(
        "flutter channel|composer global|yarn global|brew tap|brew untap|kubectx",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(?!list$|show$|dir$|bin$|info$|outdated$|config$|kind-|k3d-|minikube$|docker-desktop$|dev$)",
                unless="--help -h -c --current",
                says=TOOLS,
                match=("flutter channel beta", "composer global require x/y", "yarn global add x", "kubectx prod"),
                not_match=("flutter channel", "composer global show", "yarn global list", "kubectx minikube"),
            ),
        ],
    ),
    Program(
        "flutter upgrade|flutter downgrade",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                unless="--verify-only -h",
                says=TOOLS,
                match=("flutter upgrade",),
                not_match=("flutter upgrade --verify-only",),
            )
        ],
    ),
    Program(
        "kubectl config|oc config|docker context|gcloud config configurations|az cloud|podman system connection|argocd"
        " context|pulumi org",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(use-context|use|activate|set-default|default)$",
                also=r"^(?!use-context$|use$|activate$|set-default$|default$|kind(-|$)|k3d-|minikube$|docker-desktop$"
                r"|rancher-desktop$|colima|orbstack$|desktop-linux$|rootless$|local|dev$)",
                says="make later commands work elsewhere",
                match=("kubectl config use-context prod", "docker context use prod", "az cloud set-default x"),
                not_match=("kubectl config use-context minikube", "docker context ls", "docker context use default"),
            ),
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(create|rm|update|import|remove|delete|delete-\w+|set-cluster|set-credentials|unset|rename"
                r"|rename-context|register|unregister|set|add|set-default)$",
                says="make later commands work elsewhere",
                match=("docker context create x", "kubectl config delete-context x", "kubectl config unset users.x"),
                not_match=("kubectl config view", "docker context inspect"),
            ),
        ],
    ),
    Program(
        "dotnet nuget|nuget sources|nuget setapikey|helm plugin|helm repo|choco source|conan remote|krew index"
        "|opam repository|dart pub token|dotnet workload|gh alias|gh extension|glab alias|gh config|glab config"
        "|az config|minikube config|docker plugin|mise settings|pulumi plugin|rustup override|git maintenance"
        "|kubectl krew|mix hex.organization|mix hex.repo|mix hex.user|mix hex.owner|hex user|pyenv install"
        "|luarocks config|code tunnel|systemctl set-environment|vault token",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(add|remove|enable|disable|set|install|uninstall|create|rm|delete|import|edit|register|rename"
                r"|unregister|start|stop|add-source|organization|auth|key|default|set-url|upgrade|revoke|deauth)$",
                unless="--list --help -h --local --get -l",
                says=CHANGES,
                match=("helm repo add x https://x", "dotnet nuget add source x", "gh alias set x y"),
                not_match=("helm repo list", "helm repo update", "gh config get editor"),
            )
        ],
        takes="--configfile -f",
    ),
    Program(
        "systemctl set-environment|systemctl unset-environment|launchctl setenv|launchctl unsetenv|launchctl config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=".",
                says="change what every program is given",
                match=("launchctl setenv A b", "systemctl set-environment A=b"),
                not_match=("launchctl getenv A",),
            )
        ],
    ),
    Program(
        "oc project|kubens|kubectl ns|kubectl ctx",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"(?<![a-z])(prod|production|staging|live)(?![a-z])",
                says="make later commands work elsewhere",
                match=("kubens production", "oc project prod"),
                not_match=("kubens dev", "kubens"),
            )
        ],
    ),
    Program(
        "go env",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="-w -u",
                says=CHANGES,
                match=("go env -w GOFLAGS=-mod=mod", "go env -u GOPROXY"),
                not_match=("go env GOFLAGS",),
            )
        ],
    ),
)
