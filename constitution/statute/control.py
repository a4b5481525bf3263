"""Rules about control over the machine: privilege, power, permissions, accounts, services, schedules."""

from constitution.effects import Effect as E
from constitution.effects import Zone as Z
from constitution.rule import Rule
from constitution.statute.places import BEYOND
from constitution.verdict import Level

__all__ = ["CONTROL"]

ask, deny = Level.ask, Level.deny

CONTROL = (
    Rule("administrator", "privilege", E.PRIVILEGE, (), deny,
         match=("sudo rm x", "sudo -u root ls", "doas ls", "su -c 'ls'", "\\sudo ls", "env sudo ls", "pkexec ls"),
         near_miss=("echo \"sudo is fine\"", "grep sudo README.md", "man sudo", "cat sudo.txt", "git commit -m 'no sudo'")),
    Rule("power", "power", E.POWER, (), deny,
         match=("shutdown now", "reboot", "systemctl poweroff", "init 0", "/sbin/halt -f", "shutdown -h +5"),
         near_miss=("echo reboot", "git log --grep reboot", "systemctl status", "cat shutdown.py", "python reboot.py")),
    Rule("mount", "devices", E.MOUNT, (), ask, match=("mount /dev/sdb1 /mnt", "umount /mnt"), near_miss=("mount", "findmnt")),
    Rule("change_system_permissions", "permissions", (E.PERMISSIONS, E.OPEN_TO_ALL), BEYOND, deny,
         match=("chmod -R 777 /", "chown -R me /etc", "chmod 600 /etc/hosts", "chmod -R a+rwx ~", "chattr -i /etc/hosts"),
         near_miss=("chmod +x run.sh", "chmod 644 a.txt", "ls -l /etc", "stat /etc/hosts", "chown me:me a.txt")),
    Rule("open_to_everybody", "permissions", E.OPEN_TO_ALL, (), ask,
         match=("chmod 777 x", "chmod -R 0777 .", "chmod a+rwx x", "chmod ugo+rwx x", "chmod o+w x"),
         near_miss=("chmod 755 x", "chmod u+rwx x", "chmod +x x", "chmod 700 x", "chmod a+r x")),
    Rule("run_as_owner", "permissions", E.SETUID, (), deny,
         match=("chmod u+s x", "chmod 4755 x", "setcap cap_setuid+ep x", "chmod +s x", "install -m 4755 a b"),
         near_miss=("chmod 755 x", "chmod u+x x", "chmod g+w x", "getcap x", "install -m 755 a b")),
    Rule("permissions_unclear", "permissions", E.PERMISSIONS, (Z.UNKNOWN, Z.WORKSPACE_ROOT), ask,
         match=("chmod -R 755 $X", "chown -R me .", "chmod -R 700 *"), near_miss=("chmod 755 x", "chown me x")),
    Rule("accounts", "privilege", E.ACCOUNTS, (), deny, match=("useradd x", "passwd root", "usermod -aG sudo me"), near_miss=("id me", "groups")),
    Rule("services", "services", E.SERVICES, (), ask, match=("systemctl stop nginx", "service ssh restart"),
         near_miss=("systemctl status nginx", "systemctl list-units")),
    Rule("kernel", "devices", E.KERNEL, (), deny, match=("insmod x.ko", "sysctl -w a=b", "modprobe x", "date -s 2020-01-01"),
         near_miss=("sysctl a", "lsmod", "date +%F")),
    Rule("firewall", "network", E.FIREWALL, (), deny, match=("iptables -F", "ufw disable", "ip link set eth0 down"),
         near_miss=("ip addr show", "ip a")),
    Rule("kill_everything", "services", E.KILL_ALL, (), deny, match=("kill -9 -1", "pkill -u me", "killall5 -u x", "kill 1"),
         near_miss=("kill 1234", "ps aux", "pgrep x")),
    Rule("kill", "services", E.KILL, (Z.UNKNOWN,), ask),
    Rule("schedule", "persistence", E.SCHEDULE, (), ask, match=("crontab -r", "crontab jobs", "at now -f x", "echo ls | at now"),
         near_miss=("crontab -l", "atq", "cat crontab.txt")),
    Rule("system_packages", "packages", E.PACKAGES, (), ask, match=("apt-get install x", "dnf remove y", "pacman -Rns x"),
         near_miss=("apt list", "dpkg -l", "apt-cache search x")),
    Rule("cover_tracks", "evasion", E.COVER_TRACKS, (), deny, match=("history -c", "journalctl --vacuum-size=1K"),
         near_miss=("history", "journalctl -n 5")),
    Rule("escape_container", "privilege", E.CONTAINER_ESCAPE, (), deny,
         match=("docker run --privileged img", "docker run -v /:/host img", "docker run --pid=host img"),
         near_miss=("docker run --rm img", "docker run -v ./src:/src img", "docker ps")),
)  # fmt: skip
