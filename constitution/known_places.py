"""Which places on a machine hold what: lists of paths, each a pattern, relative to the home folder or absolute."""

__all__ = [
    "AUTOSTART_HOME",
    "HOME_SAMPLES",
    "KEEPS_SECRETS",
    "PRIVATE_NAME",
    "PRIVATE_SAMPLES",
    "RUNS_LATER",
    "SAMPLES",
    "SECRET_HOME",
    "SECRET_SYSTEM",
    "STARTUP_HOME",
]


def _any_of(*parts: str) -> str:
    """Return one pattern for lists of patterns with blanks or line breaks between them."""
    return "|".join(pattern for part in parts for pattern in part.split())


def _folders(*parts: str) -> str:
    """Return a pattern for such paths, and for everything below them."""
    return rf"({_any_of(*parts)})(/|$)"


KEYS = r"\.ssh \.gnupg \.password-store id_(rsa|ed25519|ecdsa|dsa)$ \.cert \.pki \.age \.config/(age|sops|gopass)"

LOGINS = r"""
    \.(aws|azure|kube|oci|bluemix|fly|cloudflared|ngrok2?)
    \.(netrc|pgpass|npmrc|pypirc|git-credentials|my\.cnf|vault-token|boto|s3cfg|dockercfg|databrickscfg|msmtprc|fetchmailrc)
    \.docker/config\.json \.gem/credentials \.terraform\.d/credentials.* \.cargo/credentials.* \.snowsql \.htpasswd
    \.m2/settings(-security)?\.xml \.gradle/gradle\.properties \.kaggle/kaggle\.json (\.cache/)?\.?huggingface/token
    \.config/(gcloud|gh|hub|op|rclone|doctl|heroku|configstore|ngrok|cloudflared|filezilla|containers/auth\.json|glab-cli)
    \.claude/\.credentials\.json \.codex/auth\.json \.gemini/oauth_creds\.json \.openai \.anthropic
"""

BROWSERS = r"""
    \.config/(google-chrome[^/]*|chromium|BraveSoftware|microsoft-edge[^/]*|vivaldi|opera) \.mozilla \.thunderbird
    Library/(Keychains|Cookies|Messages|Mail)
    Library/Application\ Support/(Google/Chrome|Firefox|BraveSoftware|Slack|discord|Signal|Microsoft\ Edge|1Password)
""".replace(r"\ ", r"[\s]")

WALLETS = r"""
    \.(electrum|bitcoin|ethereum|monero|litecoin|solana)
    \.config/(solana|Bitwarden[^/]*|1Password|keepassxc|KeePass[^/]*)
    \.local/share/(keyrings|gnome-keyring|password-store|TelegramDesktop|evolution)
    \.config/(Slack|discord|Signal|Element) \.purple \.irssi
"""

HISTORIES = r"""
    \.(bash|zsh|sh|psql|mysql|python|sqlite|irb|node_repl|rediscli|dbshell|mongosh)_history
    \.local/share/fish/fish_history
    \.(lesshst|viminfo|wget-hsts|history)
"""

SECRET_HOME = rf"({_any_of(KEYS, LOGINS, BROWSERS, WALLETS, HISTORIES)})(/|\.|$)"
"""In the home folder: keys, credentials, what a browser remembers, what was typed."""

SECRET_SYSTEM = _any_of(
    r"""
    /etc/(shadow-?|gshadow-?|passwd-?|sudoers|master\.passwd|ssh/ssh_host_\w*key|krb5\.keytab|kubernetes|ssl/private)\b
    /etc/(wireguard|openvpn|letsencrypt|ipsec\.secrets|ppp/chap-secrets|security/opasswd|NetworkManager/system-connections)\b
    /var/lib/(jenkins/secrets|kubelet|cloud/instance)\b
    /proc/[^/]+/(environ|mem)$ /proc/kcore$ /var/run/secrets/ /run/secrets/ /var/lib/docker\b /var/spool/cron\b
    /root/\.(ssh|gnupg|aws|kube|docker|netrc|\w+_history)\b
    """
)

STARTUP_HOME = _folders(
    r"\.(bashrc|bash_profile|bash_login|bash_aliases|bash_logout|profile|zshrc|zshenv|zprofile|zlogin|zlogout"
    r"|kshrc|inputrc)",
    r"\.(xinitrc|xprofile|xsession|vimrc|gvimrc|exrc|gitconfig|tmux\.conf|screenrc|gdbinit|cshrc|tcshrc|login"
    r"|curlrc|wgetrc)",
    r"\.(Rprofile|irbrc|pryrc|psqlrc|sqliterc|pythonrc|emacs(\.d/init\.el)?) \.config/(fish|git|nvim|environment\.d)",
)
"""In the home folder: files that shells and everyday programs read when they start."""

AUTOSTART_HOME = _folders(
    r"\.config/(autostart|systemd|upstart|plasma-workspace/env) \.git-templates? \.pam_environment \.xsessionrc",
    r"\.local/share/systemd \.kde/Autostart Library/(Launch(Agents|Daemons)|StartupItems)",
    r"\.local/lib/python[\d.]+/site-packages/((user|site)customize\.py|[^/]+\.pth)",
)
"""In the home folder: what is put there is started at login, by git, or by Python."""

PRIVATE_NAME = (
    r"(^|/)(\.env(\.(local|production|prod|staging|development|dev|secret))?|[^/]*\.(pem|p12|pfx|jks"
    r"|keystore|kdbx|ppk)"
    r"|id_(rsa|ed25519|ecdsa|dsa)|credentials(\.json)?|service-?account[^/]*\.json|\.netrc|\.npmrc|\.pypirc|\.pgpass"
    r"|secrets?\.(ya?ml|json|toml|env)|[^/]*\.tfstate|\.htpasswd|wallet\.dat)$"
)
"""Names that are secrets wherever they are."""

RUNS_LATER = (
    r"(^|/)\.(git/hooks|husky)/|(^|/)\.envrc$|^/etc/(profile|bash\.bashrc|zsh|rc\.local|cron|systemd|init\.d|environment"
    r"|update-motd\.d|X11)"
    r"|^/(usr/)?lib/systemd/|^/Library/Launch"
)
"""Outside the home folder: what is put there is run by shells, schedules or git."""

KEEPS_SECRETS = (
    r"\.(config|docker|cargo|gem|local|local/share|mozilla|cache|m2|gradle)$|Library$|Library/Application Support$"
)
"""Folders that hold secrets besides other things."""

HOME_SAMPLES = (
    ".ssh/id_rsa",
    ".ssh/config",
    ".gnupg/secring.gpg",
    ".aws/credentials",
    ".azure/accessTokens.json",
    ".kube/config",
    ".docker/config.json",
    ".config/gcloud/credentials.db",
    ".config/gh/hosts.yml",
    ".mozilla/firefox/x/logins.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
)
SAMPLES = ("/etc/shadow", "/etc/passwd", "/etc/sudoers", "/root/.ssh/id_rsa", *(f"/home/x/{s}" for s in HOME_SAMPLES))
PRIVATE_SAMPLES = (".env", ".env.local")
"""Secrets as they are usually called: a pattern that fits one of them may stand for it."""
