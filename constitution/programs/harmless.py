"""Programs and shell builtins that touch nothing by themselves: they print, test, wait or change the shell only."""

__all__ = ["HARMLESS"]

HARMLESS = frozenset(
    """
    echo printf true false : test [ [[ cd pushd popd dirs pwd exit return break continue shift wait jobs fg bg disown
    type which whereis whatis man info help apropos hash getopts read mapfile readarray let local declare typeset
    readonly export unset set shopt umask ulimit times caller complete compgen bind enable sleep date cal seq expr bc
    dc factor basename dirname whoami id groups users who w last lastlog uptime uname arch hostname nproc free df
    lsblk lscpu lsusb lspci lsof ps pgrep pidof pstree top htop vmstat iostat mpstat sar ss netstat tr yes tput clear
    reset stty tty locale getconf getent mktemp logger cksum sum dmesg blkid findmnt lsmod modinfo lshw dmidecode
    sensors numfmt shuf ts pv figlet cowsay banner alias unalias history trap suspend logout fc command builtin file
    cloc tokei scc nvidia-smi neofetch tmux screen open xdg-open code vi vim nvim nano emacs pbcopy pbpaste xclip xsel
    wl-copy ftype ctags uuidgen pathchk fmt hexdump readelf nm objdump ldd size c++filt strip git-lfs direnv asdf nvm
    fnm pyenv rbenv mise volta starship tldr yq toml mlr xsv csvkit csvcut miller gron fx fd-find ping dig host
    nslookup sync coproc node-gyp sw_vers system_profiler buck2 buck pants xmlstarlet xmllint xidel htmlq
    jc gojq jaq tsort look stern
    """.split()  # noqa: SIM905
)
