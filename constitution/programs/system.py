"""Programs that act on the machine: power, disks, accounts, services, processes, schedules, the kernel."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["SYSTEM"]

REMOVES = r"^(remove|purge|erase|del|autoremove)$"
ESSENTIAL = (
    r"^(kernel.*|linux-image.*|libc6?|glibc|musl|systemd|sudo|python3?|bash|coreutils|openssh-server|apt|dpkg|rpm|dnf"
    r"|yum|init|util-linux|grub.*|network-manager|initramfs-tools)$"
)
LOSES_SYSTEM = "remove what the system cannot do without"

SYSTEM = (
    Program("shutdown", [Does(Effect.POWER, unless="-c", says="shut the machine down")], unless="--show"),
    Program(
        "reboot|halt|poweroff|kexec|pm-suspend|systemctl reboot|systemctl poweroff|systemctl halt|systemctl kexec"
        "|systemctl suspend|systemctl hibernate|systemctl rescue|systemctl emergency|loginctl poweroff|loginctl reboot",
        [Does(Effect.POWER, says="stop or restart the machine")],
    ),
    Program("init|telinit", [Does(Effect.POWER, words=r"^[0-6Ss]$", says="change the machine's run level")]),
    Program(
        "mkfs|mke2fs|mkswap|wipefs|mkdosfs|newfs|mkntfs|fdformat|blkdiscard|badblocks|cryptsetup|zpool|sgdisk|sfdisk"
        "|cfdisk|gdisk|vgremove|lvremove|pvremove|mdadm|hdparm|nvme|dmsetup|tune2fs|e2fsck|fsck|resize2fs|partprobe",
        [Does(Effect.FORMAT, unless="--version --help --print -l --list", says="write file systems or disks")],
    ),
    Program("fdisk|parted", [Does(Effect.FORMAT, unless="-l --list", says="change partitions")]),
    Program(
        "diskutil", [Does(Effect.FORMAT, words=r"(?i)^(erase|partition|reformat|zero|secureErase)", says="erase disks")]
    ),
    Program(
        "mount|umount|swapoff|swapon|losetup|pivot_root",
        [
            Does(Effect.KERNEL, given="-a --all", bare=True, says="change everything that is mounted"),
            Does(Effect.KERNEL, words="^/$", says="change how the root of the file system is mounted"),
            Does(Effect.MOUNT, words=".", says="change what is mounted"),
            Does(Effect.MOUNT, given="-a --all", says="change what is mounted"),
        ],
    ),
    Program(
        "useradd|adduser|userdel|deluser|usermod|groupadd|groupdel|groupmod|passwd|chpasswd|gpasswd|visudo|vipw|vigr"
        "|chsh|chfn|newusers|pwconv|dscl",
        [Does(Effect.ACCOUNTS, says="change accounts")],
        unless="--help -S --status",
    ),
    Program(
        "systemctl",
        [
            Does(
                Effect.SERVICES,
                words=r"^(stop|start|restart|reload|disable|enable|mask|unmask|kill|edit|set-default"
                r"|isolate|daemon-reload|try-restart|reload-or-restart|revert|link)$",
                unless="--user-dummy",
                says="change services",
            )
        ],
        takes="-t --type -n -o -p --property -H -M --state",
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
                words=r"^(load|unload|bootstrap|bootout|remove|submit|enable|disable)$",
                says="change services",
            )
        ],
    ),
    Program("update-rc.d|chkconfig", [Does(Effect.SERVICES, says="change services")]),
    Program(
        "sysctl",
        [
            Does(Effect.KERNEL, given="-w -p --write --load --system", says="change kernel settings"),
            Does(Effect.KERNEL, words="=", says="change kernel settings"),
        ],
    ),
    Program(
        "insmod|rmmod|modprobe|depmod|kldload|bpftool|setenforce|grub-install|update-grub|efibootmgr|dracut|mkinitcpio"
        "|update-initramfs|ldconfig|setsebool|aa-disable|aa-teardown",
        [Does(Effect.KERNEL, says="change the kernel or how it starts")],
    ),
    Program(
        "iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|ebtables|ipset",
        [Does(Effect.FIREWALL, unless="-L -S --list-all --list --state", words=r".|^$", says="change the firewall")],
    ),
    Program(
        "iptables|ip6tables", [Does(Effect.FIREWALL, given="-F -X -P -A -D -I --flush", says="change the firewall")]
    ),
    Program(
        "ip|ifconfig|route|nmcli|netplan",
        [
            Does(
                Effect.FIREWALL,
                words=r"^(add|del|delete|set|flush|down|up|change|replace|apply"
                r"|disconnect|off)$",
                says="change the network",
            )
        ],
    ),
    Program(
        "kill",
        [
            Does(Effect.KILL_ALL, given="-1", bare=True, says="end every process"),
            Does(Effect.KILL_ALL, words=r"^-?(1|-1)$", says="end every process"),
            Does(Effect.KILL),
        ],
        takes="-s -n",
        unless="-l -L",
        long_style=True,
    ),
    Program("killall5", [Does(Effect.KILL_ALL, says="end every process")]),
    Program("getent", [Does(Effect.TAKE_KEYS, words=r"^g?shadow$", says="show passwords")]),
    Program(
        "pkill|killall|skill|slay",
        [
            Does(Effect.KILL_ALL, given="-u -U --user --euid", says="end every process of a user"),
            Does(
                Effect.KILL_ALL, words=r"^(\.|\.\*|init|systemd|sshd|\*|)$", says="end processes that everything needs"
            ),
            Does(Effect.KILL),
        ],
        takes="-s --signal -g -P -t",
        unless="-l --list",
    ),
    Program("fuser", [Does(Effect.KILL, given="-k --kill")]),
    Program("crontab", [Does(Effect.SCHEDULE, unless="-l", says="change what runs on a schedule")], takes="-u"),
    Program("at|batch", [Does(Effect.SCHEDULE, unless="-l -c", says="run something later")], takes="-f -q -t"),
    Program("stress|stress-ng", [Does(Effect.EXHAUST, says="use up the machine")]),
    Program("enable", [Does(Effect.PRELOAD, "-f", says="load {path} into the shell")], takes="-f"),
    Program("hash", [Does(Effect.PRELOAD, "-p", says="put {path} behind another name")], takes="-p"),
    Program("complete", [], takes="-C -F -W", runs="-C"),
    Program("tcpdump", [], takes="-z -i -w -r -c", runs="-z"),
    Program("yes", []),
    Program("history", [Does(Effect.COVER_TRACKS, given="-c -d -w", says="erase the record of what was done")]),
    Program(
        "journalctl",
        [Does(Effect.COVER_TRACKS, given="--vacuum-size --vacuum-time --vacuum-files --rotate", says="erase logs")],
        takes="-u --unit -n --lines -S --since -U --until -o --output -p -t -b",
    ),
    Program("logrotate|auditctl|wevtutil", [Does(Effect.COVER_TRACKS, words=".", says="change logs")]),
    Program(
        "hostnamectl|timedatectl|localectl|hwclock",
        [
            Does(Effect.KERNEL, words=r"^set-|^hostname$", says="change the machine's settings"),
            Does(Effect.KERNEL, given="-w --systohc --set", says="change the clock"),
        ],
    ),
    Program(
        "date", [Does(Effect.KERNEL, given="-s --set", says="change the clock")], takes="-d --date -f -r -s --set -I"
    ),
    Program(
        "defaults|scutil|spctl|csrutil|nvram|networksetup|tccutil",
        [
            Does(Effect.KERNEL, words=r"^(write|delete|disable|reset)|^-set|^--", says="change the machine's settings"),
            Does(Effect.KERNEL, given="--set --master-disable", says="change the machine's settings"),
        ],
    ),
    Program("tmutil", [Does(Effect.FORMAT, words="^(delete|disable)", says="delete backups")]),
    Program("ulimit", []),
    Program(
        "env|printenv",
        [Does(Effect.SHOW_ENVIRONMENT, bare=True, says="show the whole environment, with the keys in it")],
    ),
    Program("set|export|declare", []),
    Program(
        "pacman|yay|paru",
        [Does(Effect.PACKAGES, given="-S -R -U --sync --remove --upgrade", says="change the system's packages")],
        unless="-Q --query -F",
    ),
    Program(
        "apt|apt-get|dnf|yum|zypper|dpkg|rpm|aptitude|apk|pacman",
        [
            Does(Effect.PACKAGES_LOSS, also=REMOVES, words=ESSENTIAL, says=LOSES_SYSTEM),
            Does(Effect.PACKAGES_LOSS, given="--purge -P -r -e --erase -R", words=ESSENTIAL, says=LOSES_SYSTEM),
        ],
        takes="-o -c -t",
        unless="--dry-run -s --simulate -l -L -q -Q",
    ),
    Program(
        "apt|apt-get|dnf|yum|zypper|apk|brew|snap|port|emerge|aptitude|dpkg|rpm|nix-env|flatpak",
        [
            Does(
                Effect.PACKAGES,
                words=r"^(install|remove|purge|autoremove|erase|uninstall|upgrade|dist-upgrade|full-upgrade|update"
                r"|reinstall|add|del|downgrade|tap|untap|clean|delete)$",
                says="change the system's packages",
            ),
            Does(
                Effect.PACKAGES,
                given="-S -R -U -i -e --install --remove --purge -P -r",
                says="change the system's packages",
            ),
        ],
        takes="-o -c -t",
        unless="--dry-run -s --simulate -l -L -q -Q",
    ),
)
