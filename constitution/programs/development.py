"""Programs of everyday development: version control, packages, containers, build tools."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["DEVELOPMENT"]

LOSES = "throw away work that is not committed"
REWRITES = "rewrite or delete history"

MAIN = r"^([^:]*:)?(refs/heads/)?(main|master|trunk|develop|prod|production|release[-/\w.]*)$"
ADDRESS = r"^(https?://|git\+|git://|ssh://|git@|github:|gitlab:|bitbucket:|gist:)"
LEASE = "--force-with-lease"
OVERWRITES_MAIN = "overwrite or delete the main branch for everybody"

DEVELOPMENT = (
    Program(
        "git push",
        [
            Does(
                Effect.SHARED_HISTORY_LOSS,
                given="-f --force --force-with-lease --force-if-includes --mirror -d --delete --prune",
                says="overwrite or delete what others see",
            ),
            Does(
                Effect.MAIN_HISTORY_LOSS, given="-f --force -d --delete", words=MAIN, unless=LEASE, says=OVERWRITES_MAIN
            ),
            Does(Effect.MAIN_HISTORY_LOSS, words=rf"^[+:]{MAIN[1:]}", unless=LEASE, says=OVERWRITES_MAIN),
            Does(
                Effect.MAIN_HISTORY_LOSS,
                given="--mirror --prune",
                unless=LEASE,
                says=OVERWRITES_MAIN,
                match=("git push --mirror x",),
                not_match=("git push --tags",),
            ),
            Does(
                Effect.MAIN_HISTORY_LOSS,
                given="-f --force",
                besides="--all --tags --branches",
                unless=LEASE,
                says=OVERWRITES_MAIN,
                match=("git push --force --all", "git push origin -f --tags"),
                not_match=("git push --all",),
            ),
            Does(Effect.SHARED_HISTORY_LOSS, words=r"^[+:]", says="overwrite or delete what others see"),
        ],
        takes="-o --push-option --repo --receive-pack",
        unless="-n --dry-run",
    ),
    Program("git reset", [Does(Effect.HISTORY_LOSS, given="--hard --merge --keep", says=LOSES)]),
    Program(
        "git clean",
        [Does(Effect.HISTORY_LOSS, given="-f --force -x -X -d", says="delete files that are not tracked")],
        takes="-e --exclude",
        unless="-n --dry-run",
    ),
    Program(
        "git checkout",
        [
            Does(Effect.HISTORY_LOSS, given="-f --force", says=LOSES),
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", says=LOSES),
        ],
        takes="-b -B --orphan",
    ),
    Program(
        "git restore",
        [
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", unless="--staged -S", says=LOSES),
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", given="--worktree -W", says=LOSES),
        ],
        takes="-s --source",
    ),
    Program(
        "git switch",
        [Does(Effect.HISTORY_LOSS, given="-f --force --discard-changes -C --force-create", says=LOSES)],
        takes="-c -C",
    ),
    Program(
        "git branch",
        [
            Does(Effect.HISTORY_LOSS, given="-D", says=REWRITES),
            Does(Effect.HISTORY_LOSS, given="-f --force", says=REWRITES),
        ],
        takes="-u --set-upstream-to --contains --merged --format --sort",
    ),
    Program("git tag", [Does(Effect.HISTORY_LOSS, given="-d --delete -f --force", says=REWRITES)], takes="-m -F -u"),
    Program(
        "git stash",
        [Does(Effect.HISTORY_LOSS, words=r"^(drop|clear)$", says="throw away stashed work")],
        takes="-m --message",
    ),
    Program(
        "git reflog",
        [
            Does(Effect.HISTORY_LOSS, words=r"^(expire|delete)$", says=REWRITES, match=("git reflog delete x",)),
            Does(
                Effect.HISTORY_GONE,
                words=r"^expire$",
                given="--all --expire --expire-unreachable",
                says="make git forget what could be brought back",
                match=("git reflog expire --expire=now --all",),
                not_match=("git reflog show --all",),
            ),
        ],
    ),
    Program(
        "git filter-branch|git filter-repo|git update-ref|git replace|git prune|git symbolic-ref",
        [Does(Effect.HISTORY_LOSS, says=REWRITES)],
        takes="--path --msg-filter --tree-filter --index-filter --env-filter --commit-filter",
        runs="--msg-filter --tree-filter --index-filter --env-filter --commit-filter",
    ),
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
                unless="get list delete ls",
                says="make a package manager ask somebody else, or run something else",
                match=("npm config set registry http://x.com", "pip config set global.trusted-host x.com"),
                not_match=("npm config get registry", "npm config list", "go env GOPROXY"),
                also=r"^(set|add|--add|edit|--set|-w)$|=",
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
        "pip uninstall|pip3 uninstall|npm uninstall|npm rm|brew uninstall|conda remove|conda env"
        "|nix-collect-garbage|nix-store|uv pip",
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
                match=("pip uninstall -r x.txt",),
            ),
        ],
    ),
    Program(
        "conda env remove|conda remove|mamba env remove|nix-collect-garbage|nix-store --delete|nix profile"
        "|pyenv uninstall|rbenv uninstall"
        "|nvm uninstall|rustup self|rustup toolchain",
        [
            Does(
                Effect.PACKAGES,
                unless="--dry-run list",
                words=r"^(?!list|install|add|history)|^$",
                says="remove what other projects use",
                match=("conda env remove -n base", "nix-collect-garbage -d x"),
                not_match=("conda env list", "rustup toolchain list"),
            )
        ],
        takes="-n --name",
    ),
    Program(
        "nix-collect-garbage",
        [Does(Effect.PACKAGES, says="remove what other projects use", match=("nix-collect-garbage -d",))],
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
        long_style=True,
    ),
    Program("git gc", [Does(Effect.HISTORY_LOSS, given="--prune", says=REWRITES)]),
    Program("git rebase", [], takes="-x --exec --onto -s -X", runs="-x --exec"),
    Program("git difftool|git mergetool", [], takes="-x --extcmd -t --tool", runs="-x --extcmd"),
    Program("git grep", [], takes="-O --open-files-in-pager -e -f -A -B -C", runs="-O --open-files-in-pager"),
    Program("git rm", [Does(Effect.DELETE, "operands", unless="--cached -n --dry-run")]),
    Program("git clone|git fetch|git pull", [Does(Effect.RISKY_CODE, words="^ext::", says="start another program")]),
    Program("git mv", []),
    Program("git worktree", [Does(Effect.HISTORY_LOSS, words="^remove$", given="-f --force", says=LOSES)]),
    Program("git submodule", [Does(Effect.HISTORY_LOSS, words="^deinit$", given="-f --force --all", says=LOSES)]),
    Program(
        "git config",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"(?i)^(core\.(hookspath|pager|editor|sshcommand|fsmonitor|askpass)|alias\..*|credential\..*"
                r"|filter\..*|diff\..*\.(command|textconv)|include.*|url\..*|commit\.gpgsign|tag\.gpgsign"
                r"|receive\..*|transfer\.fsckobjects|http\.(sslverify|proxy)|safe\.directory|init\.templatedir"
                r"|protocol\..*|sequence\.editor"
                r"|merge\..*\.driver|gpg\..*program|uploadpack\..*)$",
                unless="--get --get-all -l --list --get-regexp --unset",
                says="make git run something else",
            )
        ],
        takes="-f --file --type",
    ),
    Program(
        "git remote", [Does(Effect.CONFIGURE_TOOL, words=r"^(set-url|remove|rm)$", says="change where git pushes to")]
    ),
    Program("git archive", [Does(Effect.WRITE, "-o --output")], takes="-o --output --format --prefix --remote"),
    Program(
        "git clone", [Does(Effect.WRITE, "rest")], takes="-b --branch --depth -o --origin -c --config --reference -j"
    ),
    Program(
        "git",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="-c --config-env",
                values=r"(?i)^(core\.(hookspath|pager|editor|sshcommand|fsmonitor"
                r"|askpass)|alias\..*|credential\..*|diff\..*|filter\..*|protocol\..*)=",
                says="make git run something else",
            )
        ],
        takes="-C -c --git-dir --work-tree --namespace --exec-path --config-env",
    ),
    Program(
        "hg|svn|jj|bzr|fossil",
        [
            Does(
                Effect.HISTORY_LOSS,
                words=r"^(strip|purge|revert|abandon|rollback|histedit|obliterate|delete)$",
                says=LOSES,
            )
        ],
    ),
    Program(
        "npm|pnpm|yarn|bun",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(publish|unpublish|deprecate|owner|token|adduser|login|dist-tag)$",
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
        takes="--prefix --registry -w --workspace -C --filter --cwd --tag",
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
            Does(Effect.WRITE, "-t --target --prefix --root"),
        ],
        takes="-r --requirement -c --constraint -i --index-url --extra-index-url -t --target --trusted-host -f "
        "--find-links -n --name --prefix --root",
    ),
    Program(
        "twine|gem push|cargo publish|cargo yank|cargo login|poetry publish|uv publish|hatch publish|flit "
        "publish|mvn deploy|docker push"
        "|docker login|podman push|helm push|vsce publish|npm-publish|goreleaser",
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
            Does(
                Effect.RUN_FETCHED_CODE,
                given="-p --package --from --with --spec",
                values=ADDRESS,
                says="run a program from an address",
            ),
        ],
        takes="-p --package --from --with --spec -c --call",
    ),
    Program("go install|go get|gem install", []),
    Program(
        "rails|rake|artisan|prisma|sequelize|knex|alembic|mix|typeorm|sequelize-cli|drizzle-kit",
        [
            Does(
                Effect.DATABASE_RESET,
                words=r"^(db:(drop|reset|purge|wipe|schema:load)|migrate:(fresh|reset|refresh)|db:wipe|reset"
                r"|ecto\.(drop|reset)"
                r"|schema:drop|drop|downgrade)$",
                says="empty a database",
            )
        ],
    ),
    Program(
        "python|php",
        [
            Does(
                Effect.DATABASE_RESET,
                words=r"^(flush|reset_db|sqlflush|migrate:(fresh|reset|refresh)|db:wipe)$",
                also=r"(^|/)(manage\.py|artisan)$",
                says="empty a database",
            )
        ],
    ),
    Program(
        "make|gmake|ninja|cmake|bazel|gradle|gradlew|mvn|ant|just|task|rake|tox|nox|meson|scons|msbuild|cargo"
        "|rustc|rustup|go"
        "|gofmt|gcc|g++|cc|c++|clang|clang++|ld|as|javac|tsc|esbuild|vite|webpack|rollup|swc|babel|dotnet"
        "|swift|xcodebuild"
        "|flutter|dart|mix|elixirc|ghc|cabal|stack|sbt|lein|zig|nim|crystal|bundle|gem|composer|poetry|pdm|hatch|uv|rye"
        "|pipenv|virtualenv|turbo|nx|lerna|deno|protoc|buf|sam|ocamlfind|dune|opam|kotlinc|scalac|nvcc|configure",
        [Does(Effect.WRITE, "-o --output"), Does(Effect.READ, "-C --directory -f --file")],
        takes="-o --output -C --directory -f --file -j --jobs -p -I -L -D -B -S -G -t --target --features -l -x "
        "-m -k --build",
    ),
    Program(
        "pytest|py.test|unittest|mypy|pyright|ruff|black|isort|flake8|pylint|bandit|coverage|pre-commit|eslint"
        "|prettier|jest|vitest"
        "|mocha|playwright|cypress|rspec|rubocop|phpunit|ctest|golangci-lint|clippy|rustfmt|shellcheck|shfmt"
        "|clang-format"
        "|clang-tidy|cppcheck|valgrind|gdb|lldb|perf|hyperfine|sphinx-build|mkdocs|pandoc|pdflatex|latexmk"
        "|doxygen|dot|convert"
        "|magick|ffmpeg|ffprobe|identify|codespell|yamllint|hadolint|actionlint|stylelint|biome|ava|tap|c8|nyc"
        "|tsx|ts-node"
        "|alembic|django-admin|flask|uvicorn|gunicorn|celery|jupyter|ipython|streamlit|nodemon|pm2|serve"
        "|locust|mutmut|vulture",
        [Does(Effect.WRITE, "-o --output --basetemp --junitxml"), Does(Effect.READ, "-c --config --rootdir")],
        takes="-o --output -k -m -n -p -c --config --rootdir --basetemp --junitxml --cov -W --maxfail --tb -i -e -x -t",
    ),
)
