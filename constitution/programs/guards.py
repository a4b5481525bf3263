"""What guards a machine or records what is done on it, who is trusted, and tools whose use is to attack or to spy."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["GUARDS", "GUARD_NAMES"]

GUARD_NAMES = (
    r"(?i)^\0?(auditd|kauditd|.*r?syslog(d|-ng)?|rsyslog|systemd-journald|journald|systemd-journal.*|firewalld"
    r"|ufw|iptables|ip6tables"
    r"|nftables|apparmor|selinux.*|fail2ban|crowdsec.*|sshguard|denyhosts|falcon.*|csagent|clam(av|d).*"
    r"|freshclam|osquery.*"
    r"|wazuh.*|ossec.*|falco.*|sysdig.*|tetragon|aide|tripwire|samhain|rkhunter|suricata|snort|zeek"
    r"|unattended-upgrades|apt-daily.*|mdatp|sentinel.*|cbagentd|carbonblack.*|cylance.*|trend.*|ds_agent"
    r"|esets|sophos.*"
    r"|mcafee.*|xagt|nessus.*|qualys.*|auditbeat|filebeat|winlogbeat|fluentd?|fluent-bit"
    r"|datadog-agent|newrelic.*|splunk.*|elastic-agent|usbguard|opensnitch.*|littlesnitch|lulu"
    r"|process-accounting|acct|psacct"
    r"|defender|windefend|mpssvc|santa|santad|jamf.*|kandji|guardduty.*|amazon-ssm-agent)(\.service|\.socket|\.timer)?$"
)
"""Services that guard or record."""

STOPS = r"^(stop|disable|mask|kill|revert|off|unload|bootout|remove|force-stop|down|reset|teardown|force-reload)$"
SWITCHES_OFF = "switch off what guards or records the machine"
TRUSTS = "make the machine trust somebody else"

LOADS = Does(
    Effect.NETWORK,
    "operands",
    words=r"://",
    says="load another machine",
    match=("ab -n 1000000 https://x.com/", "wrk -t12 https://x.com", "siege -q https://x.com/"),
    not_match=("wrk -t2 http://localhost:80/", "ab -n 10 http://127.0.0.1/"),
)

GUARDS = (
    Program(
        "systemctl|service|rc-service|initctl|launchctl|rc-update|update-rc.d|chkconfig|sv|s6-svc|svc|sc"
        "|sc.exe|net|supervisorctl"
        "|monit",
        [
            Does(
                Effect.DISARM,
                words=STOPS,
                also=GUARD_NAMES,
                says=SWITCHES_OFF,
                match=(
                    "systemctl stop auditd",
                    "service rsyslog stop",
                    "systemctl disable --now ufw",
                    "systemctl mask falcon-sensor",
                ),
                not_match=("systemctl status auditd", "systemctl stop nginx", "systemctl start auditd"),
            )
        ],
    ),
    Program(
        "kill|pkill|killall|skill|slay|xkill",
        [
            Does(
                Effect.DISARM,
                words=GUARD_NAMES,
                says=SWITCHES_OFF,
                match=("killall rsyslogd", "pkill -9 auditd", "kill -9 $(pidof auditd)", "pkill -f osqueryd"),
                not_match=("kill 1234", "pkill node", "kill -9 $(pidof node)"),
            )
        ],
    ),
    Program(
        "auditctl",
        [
            Does(
                Effect.DISARM,
                given="-D -e -d -W",
                says=SWITCHES_OFF,
                match=("auditctl -D", "auditctl -e 0"),
                not_match=("auditctl -l", "auditctl -s"),
            ),
            Does(
                Effect.DISARM,
                given="-a -A",
                values="never",
                says=SWITCHES_OFF,
                match=("auditctl -a never,task", "auditctl -A never,exit"),
                not_match=("auditctl -a always,exit -S open",),
            ),
        ],
        takes="-a -A",
    ),
    Program(
        "setenforce|aa-disable|aa-teardown|aa-complain|apparmor_parser|setsebool|semanage|semodule|audit2allow"
        "|fail2ban-client"
        "|cscli|csrutil|spctl|tccutil|amfi|auditpol|pwconv|wevtutil|fsutil|bcdedit|usbguard|mokutil",
        [
            Does(
                Effect.DISARM,
                unless="-l --list",
                words=r"^(?!status$|list$|get$|version$|show$|isRunning$|ping$)",
                says=SWITCHES_OFF,
                match=("setenforce 0", "aa-complain /usr/sbin/x", "fail2ban-client stop", "csrutil disable"),
                not_match=("csrutil status", "fail2ban-client status"),
            ),
            Does(
                Effect.DISARM,
                given="--master-disable",
                says=SWITCHES_OFF,
                match=("spctl --master-disable",),
                not_match=("spctl --status",),
            ),
        ],
    ),
    Program("aa-teardown", [Does(Effect.DISARM, says=SWITCHES_OFF, match=("aa-teardown",), not_match=("aa-status",))]),
    Program(
        "Set-MpPreference|Add-MpPreference|netsh|Stop-Service|Disable-WindowsOptionalFeature"
        "|Set-ExecutionPolicy|Clear-EventLog"
        "|Remove-MpThreat|Set-NetFirewallProfile|reg|schtasks|net1|wmic|vssadmin|cipher|takeown|icacls",
        [
            Does(
                Effect.DISARM,
                says="change what guards a Windows machine",
                words=".",
                match=("netsh advfirewall set allprofiles state off", "Set-MpPreference x"),
                not_match=("echo netsh",),
            )
        ],
    ),
    Program(
        "fc|history|wtmp|utmpdump|lastlog|faillock|pam_tally2|logsave|dmesg|journalctl|log",
        [
            Does(
                Effect.COVER_TRACKS,
                given="--clear-all -C --erase --reset --flush-logs",
                says="erase the record of what was done",
                match=("dmesg -C", "dmesg --clear", "lastlog --clear -u me", "faillock --user me --reset"),
                not_match=("dmesg -T", "dmesg | tail"),
            ),
            Does(
                Effect.COVER_TRACKS,
                words=r"^erase$",
                says="erase the record of what was done",
                match=("log erase --all",),
                not_match=("log show",),
            ),
        ],
    ),
    Program(
        "apt-key|add-apt-repository|apt-add-repository|rpmkeys|pacman-key|update-ca-certificates|update-ca-trust|trust"
        "|certutil|zypper addrepo|dnf config-manager|yum-config-manager|brew tap",
        [
            Does(
                Effect.TRUST,
                unless="-L --list -l --list-keys --finger",
                words=r"^(?!list$|finger$)",
                says=TRUSTS,
                match=("apt-key add x.gpg", "add-apt-repository ppa:x/y", "trust anchor x.crt", "certutil -A -i x"),
                not_match=("apt-key list", "trust list"),
            )
        ],
    ),
    Program(
        "keytool",
        [
            Does(
                Effect.TRUST,
                given="-import -importcert -importkeystore -importpass -genkeypair -delete -gencert",
                says=TRUSTS,
                match=("keytool -import -alias x -file y",),
                not_match=("keytool -list -keystore x",),
            )
        ],
        long_style=True,
    ),
    Program(
        "update-ca-certificates|update-ca-trust",
        [Does(Effect.TRUST, says=TRUSTS, match=("update-ca-certificates",), not_match=("ls /usr",))],
    ),
    Program(
        "security",
        [
            Does(
                Effect.TRUST,
                words=r"^(add-trusted-cert|authorizationdb|remove-trusted-cert|trust-settings-import|delete-.*)$",
                says=TRUSTS,
                match=("security add-trusted-cert -d x.crt",),
                not_match=("security list-keychains",),
            )
        ],
    ),
    Program(
        "xhost",
        [
            Does(
                Effect.TRUST,
                words=r"^\+",
                says="let everybody use the screen",
                match=("xhost +",),
                not_match=("xhost",),
            )
        ],
    ),
    Program(
        "xattr",
        [
            Does(
                Effect.DISARM,
                given="-d -c",
                words=r"quarantine|\.app$|^-?r",
                says="take the mark of what was downloaded off",
                match=("xattr -d com.apple.quarantine x.app", "xattr -cr x.app"),
                not_match=("xattr -l x",),
            )
        ],
        long_style=False,
    ),
    Program(
        "update-alternatives|alternatives|eselect",
        [
            Does(
                Effect.KERNEL,
                given="--install --set --config --remove-all --auto",
                says="put another program behind a name, for everybody",
                match=("update-alternatives --install /usr/bin/python python /tmp/x 1", "alternatives --set java /x"),
                not_match=("update-alternatives --list java", "update-alternatives --display java"),
            )
        ],
    ),
    Program(
        "arp|tc|ethtool|iw|rfkill|brctl|bridge|ipvsadm|conntrack|resolvectl|systemd-resolve|wg|wg-quick"
        "|openvpn|tailscale|zerotier-cli"
        "|iwconfig|nmtui|dhclient|macchanger",
        [
            Does(
                Effect.FIREWALL,
                given="-s -d -F -D --set --flush -I --delete",
                says="change the network",
                match=("arp -s 1.2.3.4 x", "ipvsadm --flush", "conntrack -F"),
                not_match=("arp -a", "ethtool eth0"),
            ),
            Does(
                Effect.FIREWALL,
                words=r"^(add|del|delete|set|flush|down|up|change|replace|block|dns|default-route|revert|quick"
                r"|logout|join)$",
                says="change the network",
                match=("tc qdisc add dev eth0 root netem loss 100%", "wg-quick up x", "tailscale up"),
                not_match=("tc qdisc show", "tailscale status"),
            ),
        ],
    ),
    Program(
        "networksetup|scutil",
        [
            Does(
                Effect.FIREWALL,
                given="--set -setwebproxy -setsecurewebproxy -setsocksfirewallproxy -setautoproxyurl -setdnsservers"
                " -setmanual -setdhcp -setairportnetwork -setairportpower -setnetworkserviceenabled",
                says="change the network",
                match=("networksetup -setwebproxy Wi-Fi x 80",),
                not_match=("networksetup -listallhardwareports", "networksetup -getwebproxy Wi-Fi"),
            )
        ],
        long_style=True,
    ),
    Program(
        "hydra|medusa|ncrack|patator|sqlmap|nikto|msfconsole|msfvenom|msfdb|ettercap|arpspoof|bettercap"
        "|aircrack-ng|aireplay-ng"
        "|airodump-ng|airmon-ng|responder|mimikatz|hping3|slowloris|goldeneye|john|hashcat|crackmapexec"
        "|netexec|nxc|evil-winrm"
        "|impacket-.*|secretsdump.py|psexec.py|linpeas|linpeas.sh|linenum.sh|pspy|pspy64|chisel|ligolo|setoolkit"
        "|wpscan|dirb|gobuster|ffuf|feroxbuster|wfuzz|commix|xsser|dnscat|dnscat2|iodine|ptunnel|weevely|thc-ssl-dos"
        "|reaver|wifite|kismet|macof|yersinia|loic|mdk3|mdk4|unshadow|lazagne|bloodhound|rubeus|searchsploit"
        "|xmrig|xmr-stak"
        "|minerd|cpuminer|cgminer|bfgminer|ethminer|nbminer|phoenixminer|lolminer|gminer|nanominer|ccminer"
        "|nicehash|srbminer"
        "|logkeys|keysniffer|pwdump|fgdump|ophcrack|rsmangler|cewl|enum4linux|smbmap|kerbrute",
        [
            Does(
                Effect.ATTACK,
                says="attack, or earn with somebody else's machine",
                match=("hydra -l root ssh://x", "msfvenom -p x", "xmrig -o pool:1", "john hashes.txt", "sqlmap -u x"),
                not_match=("grep hydra x", "which john"),
            )
        ],
        unless="--version",
    ),
    Program(
        "masscan|zmap|zgrab|zgrab2",
        [
            Does(
                Effect.ATTACK,
                words=".",
                says="probe whole networks",
                match=("masscan 10.0.0.0/8 -p 22", "zmap -p 80 10.0.0.0/8"),
                not_match=("masscan --version",),
            )
        ],
    ),
    Program(
        "nmap|rustscan|tcpdump|tshark|dumpcap|wireshark|ngrep|arp-scan|netdiscover|dnsrecon"
        "|dnsenum|fierce|amass|subfinder"
        "|theHarvester|whatweb|nuclei|nbtscan|onesixtyone|snmpwalk|ldapsearch",
        [
            Does(
                Effect.NETWORK,
                words=".",
                unless="-r --read-file",
                says="probe machines or networks",
                match=("nmap 10.0.0.0/8", "ldapsearch -h x"),
                not_match=("nmap --version",),
            ),
            Does(
                Effect.NETWORK,
                given="-i -w",
                says="record what others send",
                match=("tcpdump -i any -w x.pcap", "tshark -i eth0"),
                not_match=("tcpdump --version",),
            ),
        ],
    ),
    Program("ab", [LOADS], takes="-n -c -t -H -A -T -b -p -s -u -v"),
    Program("hey|boom|oha", [LOADS], takes="-n -c -t -d -H -z -q -m -A -T -a"),
    Program(
        "wrk|wrk2|vegeta|siege|k6|bombardier|autocannon|jmeter|tsung|h2load|slowhttptest|loadtest|drill-load|gatling",
        [LOADS],
        takes="-n -c -t -d -H -m",
    ),
    Program(
        "softwareupdate",
        [
            Does(
                Effect.DISARM,
                given="--ignore --schedule",
                says="leave out updates",
                match=("softwareupdate --ignore x", "softwareupdate --schedule off"),
                not_match=("softwareupdate --list",),
            )
        ],
    ),
)
