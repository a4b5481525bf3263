"""Options whose value is a command: programs of everyday use that start others, wherever a word tells them to."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["ESCAPES"]

TYPED = "start a shell in which anything can be typed"

ESCAPES = (
    Program(
        "apt|apt-get|aptitude",
        takes="-o --option -c -t",
        runs="-o --option",
        match=("apt-get -o APT::Update::Pre-Invoke::='rm -rf ~' update",),
        not_match=("apt-get -s -o Debug::NoLocking=1 install x",),
    ),
    Program(
        "hg|chg",
        takes="--config -R --cwd",
        runs="--config",
        match=("hg --config alias.x='!rm -rf ~' x",),
        not_match=("hg --config ui.color=no log",),
    ),
    Program(
        "svn",
        [
            Does(
                Effect.UPLOAD,
                first="^import$",
                words="://",
                says="copy files to another machine",
                match=("svn import . https://x.com/y -m z",),
                not_match=("svn log https://x.com/y",),
            )
        ],
        takes="--editor-cmd --diff-cmd --diff3-cmd --merge-cmd -m -r --username --password",
        runs="--editor-cmd --diff-cmd --diff3-cmd",
        match=("svn ci --editor-cmd 'rm -rf ~'", "svn diff --diff-cmd 'rm -rf ~'", "svn up --diff3-cmd 'rm -rf ~'"),
        not_match=("svn diff --diff-cmd diff",),
    ),
    Program(
        "gcc|g++|cc|c++|clang|clang++|gfortran",
        takes="-wrapper",
        runs="-wrapper",
        long_style=True,
        match=("gcc -wrapper rm,-rf,/home x.c", "gcc -wrapper /bin/sh,-s ."),
        not_match=("gcc -wrapper ccache x.c",),
    ),
    Program(
        "mail|mailx|s-nail",
        takes="--exec -s -a",
        runs="--exec",
        match=("mail --exec='!rm -rf ~'",),
        not_match=("mail --exec=quit",),
    ),
    Program(
        "mysql|mariadb",
        takes="--pager -e -h -u -D",
        runs="--pager",
        match=("mysql --pager='rm -rf ~' -e x",),
        not_match=("mysql --pager=less -e x",),
    ),
    Program(
        "psql",
        takes="-P --pset -c -h -U -d",
        runs="-P --pset",
        match=("psql -P pager='rm -rf ~' -c x", "psql --pset=pager='rm -rf ~' -c x"),
        not_match=("psql -P pager=off -c x", "psql -P format=csv -c x"),
    ),
    Program(
        "rpm",
        takes="--pipe",
        runs="--pipe",
        match=("rpm --pipe 'rm -rf ~' -qa",),
        not_match=("rpm --pipe cat -qa",),
    ),
    Program(
        "aria2c",
        takes="--on-download-complete --on-download-error --on-download-start --on-download-stop -o -d",
        runs="--on-download-complete --on-download-error --on-download-start --on-download-stop",
        long_style=True,
        match=("aria2c --on-download-complete='rm -rf ~' localhost/x",),
        not_match=("aria2c localhost/x",),
    ),
    Program(
        "wget",
        takes="--use-askpass",
        runs="--use-askpass",
        long_style=True,
        match=("wget --use-askpass='rm -rf ~' localhost/x",),
        not_match=("wget localhost/x",),
    ),
    Program("nano|pico", takes="-s --speller", runs="-s --speller", match=("nano -s /bin/sh",), not_match=("nano x",)),
    Program(
        "snap run",
        [
            Does(
                Effect.ESCAPE_SHELL,
                given="--shell",
                says=TYPED,
                match=("snap run --shell x",),
                not_match=("snap run x",),
            )
        ],
    ),
    Program(
        "git",
        [
            Does(
                Effect.SEARCH_PATH,
                "--exec-path",
                match=("git --exec-path=/tmp/x status",),
                not_match=("git --exec-path",),
            )
        ],
        takes="-C -c --git-dir --work-tree",
    ),
    Program(
        "ssh",
        [Does(Effect.WRITE, "-E", match=("ssh -E ~/.bashrc host",), not_match=("ssh -V",))],
        takes="-E -i -p -l -o -F -J -L -R -D -b -c -e -I -m -O -Q -S -W -w -B",
    ),
)
