"""Programs that install packages, publish them, and say where they come from."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["PACKAGES"]

ADDRESS = r"^(https?://|git\+|git://|ssh://|git@|github:|gitlab:|bitbucket:|gist:)"

PACKAGES = (
    Program(
        "npm|pnpm|yarn|cargo|gem|bun",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(unpublish|yank)$",
                unless="--dry-run",
                says="take away what others use",
                match=("npm unpublish x --force", "cargo yank --vers 1.0.0", "gem yank x"),
                not_match=("npm publish --dry-run", "npm view x"),
            )
        ],
    ),
    Program(
        "npm config|npm set|npm c|yarn config|pnpm config|bun config|pip config|pip3 config|poetry config|gem"
        " sources|bundle config"
        "|conda config|go env|cargo config|composer config|uv config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"(?i)registry|script-shell|index-url|proxy|init-module|cafile|^ca$|prefix|node-options"
                r"|trusted-host|^--add$"
                r"|channels|mirror|shell|goproxy|repositories",
                says="make a package manager ask somebody else, or run something else",
                match=("npm config set registry http://x.com", "pip config set global.trusted-host x.com"),
                not_match=("npm config get registry", "npm config list", "go env GOPROXY"),
                also=r"^(set|add|--add|edit|--set|-w)$|=",
            ),
            Does(
                Effect.FOREIGN_PACKAGES,
                given="-a --add",
                texts="://",
                says="make a package manager ask somebody else",
                match=("gem sources --add http://x.com", "gem sources -a http://x.com"),
                not_match=("gem sources --list", "gem sources --remove http://x.com"),
            ),
            Does(
                Effect.WEAKEN,
                words=r"(?i)strict-ssl|sslverify|trusted-host|secure-http|disable-tls",
                also=r"(?i)^(false|0|no|set)$|=false$",
                says="no longer check whom a program talks to",
                match=("npm config set strict-ssl false",),
                not_match=("npm config get strict-ssl",),
            ),
        ],
    ),
    Program(
        "pip uninstall|pip3 uninstall|npm uninstall|npm rm|brew uninstall|conda remove|uv pip uninstall",
        [
            Does(
                Effect.PACKAGES,
                words="\0",
                says="remove packages that cannot be known",
                match=("pip freeze | xargs pip uninstall -y", "pip uninstall -y $(pip freeze)"),
                not_match=("pip uninstall -y x",),
            ),
            Does(
                Effect.PACKAGES,
                given="-r --requirement",
                says="remove many packages",
                match=("pip uninstall -r x.txt", "uv pip uninstall -r x.txt"),
                not_match=("pip install -r x.txt", "uv pip install -r x.txt"),
            ),
        ],
    ),
    Program(
        "conda env remove|mamba env remove|nix-collect-garbage|nix-store --delete|nix store gc",
        [
            Does(
                Effect.PACKAGES,
                says="remove what other projects use",
                match=("conda env remove -n base", "nix-collect-garbage -d"),
                not_match=("conda env list",),
            )
        ],
    ),
    Program(
        "rustup|pyenv|rbenv|nodenv|nvm|volta|asdf|mise|sdk|fnm|jenv|gvm|ghcup|pipx|uv tool",
        [
            Does(
                Effect.PACKAGES,
                words=r"^(uninstall|uninstall-all|remove|default|global|update|upgrade|upgrade-all|alias|self"
                r"|inject|reinstall.*)$",
                says="change tools for every project",
                match=("rustup update", "pyenv global 3.12", "pipx upgrade-all", "nvm alias default 20"),
                not_match=("pyenv versions", "nvm use 20", "rustup show"),
            ),
        ],
    ),
    Program(
        "nvm|pyenv|rbenv|nodenv|jenv|gvm|ghcup|sdk|fnm|gem|choco|winget|scoop",
        [
            Does(
                Effect.PACKAGES,
                first=r"^(install|upgrade)$",
                unless="-i --install-dir",
                says="install tools for every project",
                match=("nvm install 20", "pyenv install 3.12", "gem install rails", "choco install git"),
                not_match=("nvm use 20", "gem list", "gem install -i vendor x", "gem install --install-dir vendor x"),
            )
        ],
    ),
    Program(
        "pipx install|uv tool install|volta install|cargo install|go install",
        [
            Does(
                Effect.PACKAGES,
                says="install tools for every project",
                unless="--path",
                match=("pipx install x", "uv tool install x", "cargo install x", "go install example.com/x@latest"),
                not_match=("pipx list", "uv tool list", "cargo install --path .", "cargo build"),
            )
        ],
    ),
    Program(
        "code|cursor|codium|code-insiders",
        [
            Does(
                Effect.FOREIGN_PACKAGES,
                given="--install-extension --uninstall-extension",
                says="change what an editor runs",
                match=("code --install-extension x.vsix",),
                not_match=("code .", "code --list-extensions"),
            )
        ],
    ),
    Program(
        "npm|pnpm|yarn|bun",
        [
            Does(
                Effect.PUBLISH,
                first=r"^(publish|unpublish|deprecate|owner|token|adduser|login|dist-tag)$",
                unless="--dry-run",
                says="change what is published",
            ),
            Does(
                Effect.FOREIGN_PACKAGES,
                given="-g --global",
                words=r"^(i|install|add|uninstall|remove|update|link)$",
                says="change packages for the whole machine",
            ),
            Does(Effect.FOREIGN_PACKAGES, words=r"^(https?://|git\+|git://|ssh://)", says="install from an address"),
            Does(Effect.FOREIGN_PACKAGES, given="--registry", says="install from an address"),
        ],
        takes="--prefix --workspace -C --filter --cwd --tag",
    ),
    Program(
        "yarn global",
        [
            Does(
                Effect.FOREIGN_PACKAGES,
                first=r"^(add|remove|upgrade)$",
                says="change packages for the whole machine",
                match=("yarn global add serve",),
                not_match=("yarn global list",),
            )
        ],
    ),
    Program(
        "conda install|conda update|conda remove|mamba install|mamba update",
        [
            Does(
                Effect.PACKAGES,
                given="-n --name",
                values="^base$",
                says="change packages for every project",
                match=("conda install -n base numpy", "mamba update --name base x"),
                not_match=("conda install numpy", "conda install -n ml numpy"),
            )
        ],
        takes="-n --name -c --channel -p",
    ),
    Program(
        "pip|pip3|uv pip|pipx",
        [
            Does(
                Effect.FOREIGN_PACKAGES, words=r"^(https?://|git\+|git://|ssh://|svn\+)", says="install from an address"
            ),
            Does(
                Effect.FOREIGN_PACKAGES,
                given="-i --index-url --extra-index-url --trusted-host --break-system-packages -f --find-links",
                says="install from an address or over the system's packages",
            ),
            Does(
                Effect.FOREIGN_PACKAGES,
                given="--user",
                words="^install$",
                says="install for every project of a user",
                match=("pip install --user x",),
                not_match=("pip install x", "pip list --user"),
            ),
            Does(Effect.WRITE, "-t --target --prefix --root"),
        ],
        takes="-t --target --prefix --root",
    ),
    Program(
        "docker login|podman login|npm login|npm adduser|yarn login|pnpm login|gcloud auth|az login|gh auth"
        "|glab auth|heroku login"
        "|vercel login|netlify login|fly auth|firebase login|aws configure|aws sso|cargo login|wrangler login"
        "|railway login"
        "|huggingface-cli login|wandb login|terraform login|pulumi login|supabase login|docker logout|npm"
        " logout|helm registry",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(?!list$|status$|print-|get$|token$|whoami$)|^$",
                says="sign in somewhere, or out",
                match=("gh auth login", "aws configure set region x", "gcloud auth login"),
                not_match=("gh auth status", "gcloud auth list", "aws configure list"),
            ),
            Does(
                Effect.CONFIGURE_TOOL,
                bare=True,
                says="sign in somewhere, or out",
                match=("docker login", "npm login", "az login", "aws configure"),
                not_match=("docker ps",),
            ),
        ],
    ),
    Program(
        "twine upload|gem push|cargo publish|cargo yank|cargo login|poetry publish|uv publish|hatch publish|flit "
        "publish|mvn deploy|docker push"
        "|podman push|helm push|vsce publish|npm-publish",
        [Does(Effect.PUBLISH, unless="--dry-run -n", says="publish")],
    ),
    Program(
        "cargo install",
        [Does(Effect.FOREIGN_PACKAGES, given="--git --registry --index", says="install from an address")],
    ),
    Program(
        "npx|npm exec|npm x|pnpm dlx|yarn dlx|bunx|bun x|pipx run|uvx|deno run|go run|npm create|npm init",
        [
            Does(Effect.RUN_FETCHED_CODE, words=ADDRESS, says="run a program from an address"),
        ],
    ),
    Program("npm", [], takes="-w"),  # to pnpm it is a flag
    Program("go install|go get|gem install", []),
)
