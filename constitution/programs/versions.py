"""Programs that keep the history of a project."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["VERSIONS"]

LOSES = "throw away work that is not committed"
REWRITES = "rewrite or delete history"

MAIN = r"^([^:]*:)?(refs/heads/)?(main|master|trunk|develop|prod|production|release[-/\w.]*)$"
LEASE = "--force-with-lease"
OVERWRITES_MAIN = "overwrite or delete the main branch for everybody"

VERSIONS = (
    Program(
        "git push",
        [
            Does(
                Effect.SHARED_HISTORY_LOSS,
                given="-f --force-with-lease --force-if-includes --mirror -d --delete --prune",
                says="overwrite or delete what others see",
            ),
            Does(Effect.MAIN_HISTORY_LOSS, given="-f --force -d --delete", words=MAIN, says=OVERWRITES_MAIN),
            Does(
                Effect.MAIN_HISTORY_LOSS,
                given="-d --delete",
                words="^\0",
                says="delete any number of branches for everybody",
                match=("git branch -r | xargs git push origin --delete", "git push origin -d $(git branch -r)"),
                not_match=("git push origin --delete x",),
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
                says=OVERWRITES_MAIN,
                match=("git push --force --all", "git push origin -f --tags"),
                not_match=("git push --all",),
            ),
            Does(Effect.SHARED_HISTORY_LOSS, words=r"^[+:]", says="overwrite or delete what others see"),
        ],
        takes="-o --push-option --repo --receive-pack",
        unless="-n --dry-run",
    ),
    Program(
        "git push",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(refs/tags/)?v?\d+\.\d+(\.\d+)?([-.+]\w+)*$",
                says="publish a release",
                match=("git push origin v1.3.0",),
                not_match=("git push origin main", "git push origin fix/1.2"),
            )
        ],
        takes="-o --push-option --repo --receive-pack",
        unless="-n --dry-run -d --delete",
    ),
    Program("git reset", [Does(Effect.HISTORY_LOSS, given="--hard --merge --keep", says=LOSES)]),
    Program(
        "git clean",
        [
            Does(Effect.HISTORY_LOSS, given="-f --force -x -X -d", says="delete files that are not tracked"),
            Does(
                Effect.DELETE_TREE,
                "operands",
                given="-f --force",
                match=("git clean -fdx ~",),
                not_match=("git clean -n ~",),
            ),
        ],
        takes="-e",
        unless="-n --dry-run",
    ),
    Program(
        "git checkout",
        [
            Does(Effect.HISTORY_LOSS, given="-f --force", says=LOSES),
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", says=LOSES),
        ],
        takes="-b -B",
    ),
    Program(
        "git restore",
        [
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", unless="--staged -S", says=LOSES),
            Does(Effect.HISTORY_LOSS, words=r"^(\.|:/|\*)$", given="--worktree -W", says=LOSES),
        ],
        takes="-s",
    ),
    Program(
        "git switch",
        [Does(Effect.HISTORY_LOSS, given="-f --discard-changes -C --force-create", says=LOSES)],
        takes="-c",
    ),
    Program(
        "git branch",
        [
            Does(Effect.HISTORY_LOSS, given="-D", says=REWRITES),
            Does(Effect.HISTORY_LOSS, given="-f --force", says=REWRITES),
        ],
        takes="-u --sort",
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
                given="--all --expire-unreachable",
                says="make git forget what could be brought back",
                match=("git reflog expire --expire=now --all",),
                not_match=("git reflog show --all",),
            ),
        ],
    ),
    Program(
        "git filter-branch|git filter-repo|git update-ref|git replace|git prune|git symbolic-ref",
        [Does(Effect.HISTORY_LOSS, says=REWRITES)],
        takes="--msg-filter --tree-filter --index-filter --env-filter --commit-filter",
        runs="--msg-filter --tree-filter --index-filter --env-filter --commit-filter",
    ),
    Program("git gc", [Does(Effect.HISTORY_LOSS, given="--prune", says=REWRITES)]),
    Program(
        "git rebase",
        [
            Does(
                Effect.HISTORY_LOSS,
                given="--root",
                says=REWRITES,
                match=("git rebase -i --root",),
                not_match=("git rebase -i HEAD~3",),
            )
        ],
        takes="-x --exec",
        runs="-x --exec",
    ),
    Program("git difftool|git mergetool", [], takes="-x --extcmd", runs="-x --extcmd"),
    Program("git grep", [], takes="-O -e", runs="-O --open-files-in-pager"),
    Program("git rm", [Does(Effect.DELETE, "operands", unless="--cached -n --dry-run")]),
    Program("git clone|git fetch|git pull", [Does(Effect.RISKY_CODE, words="^ext::", says="start another program")]),
    Program("git mv", []),
    Program(
        "git apply|git am",
        [
            Does(
                Effect.WRITE,
                "--directory",
                match=("git apply --directory=/etc x.patch",),
                not_match=("git apply --check x.patch",),
            )
        ],
        takes="--directory -p",
    ),
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
        takes="-f",
    ),
    Program(
        "git remote", [Does(Effect.CONFIGURE_TOOL, words=r"^(set-url|remove|rm)$", says="change where git pushes to")]
    ),
    Program("git archive", [Does(Effect.WRITE, "-o --output")], takes="-o --output"),
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
        takes="-C -c --git-dir --work-tree --namespace --config-env",
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
)
