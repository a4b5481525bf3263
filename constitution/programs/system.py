"""Programs that act on the machine: power, disks, accounts, services, processes, schedules, the kernel."""

from constitution.effects import Effect as E
from constitution.programs.program import Does, Program

__all__ = ["SYSTEM"]

SYSTEM = (
    Program("shutdown", [Does(E.POWER, unless="-c", says="shut the machine down")], unless="--show"),
    Program("reboot|halt|poweroff|kexec|pm-suspend|systemctl reboot|systemctl poweroff|systemctl halt|systemctl kexec"
            "|systemctl suspend|systemctl hibernate|systemctl rescue|systemctl emergency|loginctl poweroff|loginctl reboot",
            [Does(E.POWER, says="stop or restart the machine")]),
    Program("init|telinit", [Does(E.POWER, words=r"^[0-6Ss]$", says="change the machine's run level")]),
    Program("mkfs|mke2fs|mkswap|wipefs|mkdosfs|newfs|mkntfs|fdformat|blkdiscard|badblocks|cryptsetup|zpool|sgdisk|sfdisk"
            "|cfdisk|gdisk|vgremove|lvremove|pvremove|mdadm|hdparm|nvme|dmsetup|tune2fs|e2fsck|fsck|resize2fs|partprobe",
            [Does(E.FORMAT, unless="--version --help --print -l --list", says="write file systems or disks")]),
    Program("fdisk|parted", [Does(E.FORMAT, unless="-l --list", says="change partitions")]),
    Program("diskutil", [Does(E.FORMAT, words=r"(?i)^(erase|partition|reformat|zero|secureErase)", says="erase disks")]),
    Program("mount|umount|swapoff|swapon|losetup|pivot_root", [Does(E.MOUNT, words=".", says="change what is mounted")]),
    Program("useradd|adduser|userdel|deluser|usermod|groupadd|groupdel|groupmod|passwd|chpasswd|gpasswd|visudo|vipw|vigr"
            "|chsh|chfn|newusers|pwconv|dscl", [Does(E.ACCOUNTS, says="change accounts")], unless="--help -S --status"),
    Program("systemctl", [Does(E.SERVICES, words=r"^(stop|start|restart|reload|disable|enable|mask|unmask|kill|edit|set-default"
            r"|isolate|daemon-reload|try-restart|reload-or-restart|revert|link)$", unless="--user-dummy", says="change services")],
            takes="-t --type -n -o -p --property -H -M --state"),
    Program("service|rc-service|initctl", [Does(E.SERVICES, words=r"^(start|stop|restart|reload|force-reload)$", says="change services")]),
    Program("launchctl", [Does(E.SERVICES, words=r"^(load|unload|bootstrap|bootout|remove|submit|enable|disable)$", says="change services")]),
    Program("update-rc.d|chkconfig", [Does(E.SERVICES, says="change services")]),
    Program("sysctl", [Does(E.KERNEL, given="-w -p --write --load --system", says="change kernel settings"),
            Does(E.KERNEL, words="=", says="change kernel settings")]),
    Program("insmod|rmmod|modprobe|depmod|kldload|bpftool|setenforce|grub-install|update-grub|efibootmgr|dracut|mkinitcpio"
            "|update-initramfs|ldconfig|setsebool|aa-disable|aa-teardown", [Does(E.KERNEL, says="change the kernel or how it starts")]),
    Program("iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|ebtables|ipset", [Does(E.FIREWALL, unless="-L -S --list-all --list "
            "--state", words=r".|^$", says="change the firewall")]),
    Program("iptables|ip6tables", [Does(E.FIREWALL, given="-F -X -P -A -D -I --flush", says="change the firewall")]),
    Program("ip|ifconfig|route|nmcli|netplan", [Does(E.FIREWALL, words=r"^(add|del|delete|set|flush|down|up|change|replace|apply"
            r"|disconnect|off)$", says="change the network")]),
    Program("kill", [Does(E.KILL_ALL, given="-1", bare=True, says="end every process"), Does(E.KILL_ALL, words=r"^-?(1|-1)$", says="end every process"), Does(E.KILL)], takes="-s -n", unless="-l -L"),
    Program("pkill|killall|killall5|skill|slay", [Does(E.KILL_ALL, given="-u -U --user --euid", says="end every process of a user"),
            Does(E.KILL_ALL, words=r"^(\.|\.\*|init|systemd|sshd|\*|)$", says="end processes that everything needs"), Does(E.KILL)],
            takes="-s --signal -g -P -t", unless="-l --list"),
    Program("fuser", [Does(E.KILL, given="-k --kill")]),
    Program("crontab", [Does(E.SCHEDULE, unless="-l", says="change what runs on a schedule")], takes="-u"),
    Program("at|batch", [Does(E.SCHEDULE, unless="-l -c", says="run something later")], takes="-f -q -t"),
    Program("stress|stress-ng", [Does(E.EXHAUST, says="use up the machine")]),
    Program("yes", []),
    Program("history", [Does(E.COVER_TRACKS, given="-c -d -w", says="erase the record of what was done")]),
    Program("journalctl", [Does(E.COVER_TRACKS, given="--vacuum-size --vacuum-time --vacuum-files --rotate", says="erase logs")],
            takes="-u --unit -n --lines -S --since -U --until -o --output -p -t -b"),
    Program("logrotate|auditctl|wevtutil", [Does(E.COVER_TRACKS, words=".", says="change logs")]),
    Program("hostnamectl|timedatectl|localectl|hwclock", [Does(E.KERNEL, words=r"^set-|^hostname$", says="change the machine's settings"),
            Does(E.KERNEL, given="-w --systohc --set", says="change the clock")]),
    Program("date", [Does(E.KERNEL, given="-s --set", says="change the clock")], takes="-d --date -f -r -s --set -I"),
    Program("defaults|scutil|spctl|csrutil|nvram|networksetup|tccutil", [Does(E.KERNEL, words=r"^(write|delete|disable|reset)|^-set|^--",
            says="change the machine's settings"), Does(E.KERNEL, given="--set --master-disable", says="change the machine's settings")]),
    Program("tmutil", [Does(E.FORMAT, words="^(delete|disable)", says="delete backups")]),
    Program("ulimit", []),
    Program("env|printenv", [Does(E.SHOW_ENVIRONMENT, bare=True, says="show the whole environment, with the keys in it")]),
    Program("set|export|declare", []),
    Program("pacman|yay|paru", [Does(E.PACKAGES, given="-S -R -U --sync --remove --upgrade", says="change the system's packages")],
            unless="-Q --query -F"),
    Program("apt|apt-get|dnf|yum|zypper|apk|brew|snap|port|emerge|aptitude|dpkg|rpm|nix-env|flatpak", [
            Does(E.PACKAGES, words=r"^(install|remove|purge|autoremove|erase|uninstall|upgrade|dist-upgrade|full-upgrade|update"
                 r"|reinstall|add|del|downgrade|tap|untap|clean|delete)$", says="change the system's packages"),
            Does(E.PACKAGES, given="-S -R -U -i -e --install --remove --purge -P -r", says="change the system's packages")],
            takes="-o -c -t", unless="--dry-run -s --simulate -l -L -q -Q"),
)  # fmt: skip
