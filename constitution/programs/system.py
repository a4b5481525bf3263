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
            Does(
                Effect.KERNEL,
                words=r"^/(etc|usr|bin|sbin|lib\w*|boot|root|home|var|proc|sys)(/|$)",
                says="put something else in place of a folder of the system",
                match=("mount --bind /tmp/x /etc",),
                not_match=("mount",),
            ),
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
    Program(
        "systemctl|launchctl|rc-update|loginctl",
        [
            Does(
                Effect.SCHEDULE,
                words=r"^(enable|link|edit|load|bootstrap|submit|add|enable-linger|add-wants|add-requires"
                r"|preset|set-property)$",
                says="have something start at every boot or login",
                match=("systemctl --user enable x", "launchctl load x.plist", "loginctl enable-linger me"),
                not_match=("systemctl status x", "launchctl list"),
            )
        ],
        takes="-t --type -n -o -p --property -H -M --state",
    ),
    Program(
        "supervisorctl|pm2|sv|svc|s6-svc|monit|forever|immortalctl|overmind",
        [
            Does(
                Effect.SERVICES,
                words=r"^(stop|shutdown|kill|delete|remove|stopall|deleteall|startup|unstartup|down|exit|d)$",
                says="stop services",
                match=("supervisorctl stop all", "pm2 delete x", "pm2 startup"),
                not_match=("supervisorctl status", "pm2 list"),
            )
        ],
    ),
    Program(
        "gsettings|dconf|kwriteconfig5|kwriteconfig6|xfconf-query|xdg-mime|xdg-settings|plutil|PlistBuddy",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=r"^(set|write|reset|load|reset-recursively|default)$|^-s$",
                says="change the settings of the desktop",
                match=("gsettings set a b c", "dconf write /a b"),
                not_match=("gsettings get a b", "dconf read /a"),
            )
        ],
    ),
    Program(
        "nvram|bless|systemsetup|pmset",
        [
            Does(
                Effect.KERNEL,
                words="=|^-?set",
                says="change how the machine starts",
                match=("nvram boot-args=x",),
                not_match=("nvram -p",),
            )
        ],
    ),
    Program(
        "lvchange|vgchange|lvreduce|vgreduce|lvresize|lvrename|vgrename|lvconvert|pvmove|pvcreate|vgcreate"
        "|lvcreate|lvextend"
        "|vgextend|dmraid|integritysetup|veritysetup|mkfs.xfs|swaplabel|e2label|xfs_growfs|growpart|gpart"
        "|zerofree|ddrescue",
        [
            Does(
                Effect.FORMAT,
                says="change volumes",
                match=("lvchange -an vg0", "lvreduce -L 1G vg0/x"),
                not_match=("lvs",),
            )
        ],
        unless="--help --version -t --test",
    ),
    Program(
        "update-rc.d|chkconfig|rc-update",
        [
            Does(
                Effect.SCHEDULE,
                words=r"^(defaults|enable|on|add|start)$",
                says="have something start at every boot",
                match=("update-rc.d x defaults", "chkconfig x on"),
                not_match=("chkconfig --list",),
            ),
            Does(
                Effect.SERVICES,
                unless="--list",
                words=r"^(off|remove|disable|del|stop|reset|--del)$",
                says="change services",
                match=("chkconfig x off", "update-rc.d x remove"),
                not_match=("chkconfig --list",),
            ),
        ],
    ),
    Program(
        "sysctl",
        [
            Does(Effect.KERNEL, given="-w -p --write --load --system", says="change kernel settings"),
            Does(Effect.KERNEL, words="=", says="change kernel settings"),
        ],
    ),
    Program(
        "insmod|rmmod|modprobe|depmod|kldload|bpftool|grub-install|update-grub|efibootmgr|dracut|mkinitcpio"
        "|update-initramfs|ldconfig",
        [Does(Effect.KERNEL, says="change the kernel or how it starts")],
    ),
    Program(
        "iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|ebtables|ipset",
        [Does(Effect.FIREWALL, unless="-L -S --list-all --list --state", words=r".|^$", says="change the firewall")],
    ),
    Program(
        "iptables|ip6tables|pfctl|firewall-cmd|ufw|nft|ipset",
        [
            Does(
                Effect.FIREWALL,
                given="-F -X -P -A -D -I --flush -d -e -f --add-port --add-service --remove-port --remove-service"
                " --panic-on --reload --set-default-zone --add-rich-rule",
                says="change the firewall",
            )
        ],
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
    Program(
        "kill",
        [
            Does(
                Effect.KILL_MATCHING,
                words=r"^\0[^\0]",
                says="end every process that fits",
                match=("kill $(pgrep -f node)", "kill -9 $(lsof -ti tcp:3000)"),
                not_match=("kill 1234", "kill %1", "kill $!", "kill $(cat x.pid)", "kill -HUP 12"),
            )
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
                Effect.KILL_MATCHING,
                words=".",
                unless="-0 -l",
                says="end every process that fits",
                match=("pkill -f 'webpack serve'", "killall node"),
                not_match=("pkill -0 node", "pgrep node"),
            ),
            Does(
                Effect.KILL_ALL, words=r"^(\.|\.\*|init|systemd|sshd|\*|)$", says="end processes that everything needs"
            ),
            Does(Effect.KILL),
        ],
        takes="-s --signal -g -P -t",
        unless="-l --list",
    ),
    Program(
        "fuser",
        [Does(Effect.KILL_MATCHING, given="-k --kill", match=("fuser -k 80/tcp",), not_match=("fuser 80/tcp",))],
    ),
    Program(
        "crontab",
        [
            Does(
                Effect.SCHEDULE,
                unless="-l -e",
                says="change what runs on a schedule",
                match=("crontab x", "crontab -r"),
                not_match=("crontab -l",),
            ),
            Does(Effect.SERVICES, given="-e", says="change what runs on a schedule", match=("crontab -e",)),
        ],
        takes="-u",
    ),
    Program("atrm", [Does(Effect.SERVICES, words=".", says="delete what was to run later", match=("atrm 1",))]),
    Program(
        "telnetd|in.telnetd|rshd|in.rshd|rlogind|dropbear|sshd|x11vnc|vncserver|Xvnc|x0vncserver|xrdp|ttyd"
        "|gotty|shellinabox"
        "|shellinaboxd|wetty|tmate|upterm|teleconsole|rustdesk|anydesk|teamviewer|meshagent|tightvncserver",
        [
            Does(
                Effect.GIVE_SHELL,
                says="give others a shell on this machine",
                match=("telnetd -l /bin/sh -p 2323", "tmate", "ttyd bash", "dropbear -p 2222"),
                not_match=("sshd -t", "which sshd"),
            )
        ],
        unless="-t -T --help --version -V",
    ),
    Program(
        "gcore|procdump|makedumpfile|volatility|lime|avml|memdump",
        [
            Does(
                Effect.TAKE_KEYS,
                says="take what a process has in its memory",
                match=("gcore 12",),
                not_match=("which gcore",),
            )
        ],
    ),
    Program(
        "ssh-add",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                words=".",
                says="hand a key to the agent",
                match=("ssh-add key",),
                not_match=("ssh-add -l",),
            ),
            Does(
                Effect.SHOW_SECRETS,
                given="-L -D -e -s",
                says="show or drop keys",
                match=("ssh-add -L",),
                not_match=("ssh-add -l",),
            ),
        ],
    ),
    Program(
        "renice",
        [
            Does(
                Effect.KERNEL,
                words=r"^1$",
                says="change the priority of what everything needs",
                match=("renice -20 1",),
            )
        ],
        takes="-n -g -u -p",
    ),
    Program("at|batch", [Does(Effect.SCHEDULE, unless="-l -c", says="run something later")], takes="-f -q -t"),
    Program("stress|stress-ng|sysbench", [Does(Effect.EXHAUST, says="use up the machine")], unless="--version --help"),
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
    Program("logrotate|wevtutil", [Does(Effect.COVER_TRACKS, words=".", says="change logs")]),
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
                r"|reinstall|add|del|downgrade|tap|untap|clean|delete|services|link|unlink|pin|refresh|switch"
                r"|cleanup|autoclean)$",
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
