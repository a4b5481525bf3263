"""Programs that reach other machines, clouds and databases."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["NETWORK"]

CURL_TAKES = (
    "-o --output -H --header -X --request -d --data --data-binary --data-raw --data-urlencode -F --form -u "
    "--user -A -e -b -c "
    "-T --upload-file -m --max-time --connect-timeout --retry -w --write-out -x --proxy --cacert --cert --key "
    "-K --config -D "
    "--dump-header -O2 --resolve --interface --limit-rate -r --range -t -C --url --json --oauth2-bearer -E "
    "--output-dir -z"
)
WGET_TAKES = (
    "-O --output-document -o --output-file -P --directory-prefix -U -t -T -Q -w -i --input-file --header "
    "--post-data --post-file "
    "-a -e -l -A -R -D --user --password --method --body-data --body-file"
)

CHANGES_HOST = "change what others see"

NETWORK = (
    Program(
        "curl",
        [
            Does(Effect.WRITE, "-o --output --output-dir -D --dump-header -c --cookie-jar"),
            Does(Effect.READ, "-K --config -T --upload-file"),
            Does(
                Effect.UPLOAD,
                "operands",
                given="-d --data --data-binary --data-raw --data-urlencode -F --form -T --upload-file --json",
                says="send data to another machine",
            ),
            Does(
                Effect.UPLOAD,
                "operands",
                given="-X --request",
                values=r"(?i)^(POST|PUT|PATCH|DELETE)$",
                says="send data to another machine",
            ),
            Does(Effect.READ, "@ -d --data --data-binary --data-urlencode -F --form --json"),
            Does(Effect.NETWORK, "operands"),
            Does(Effect.NETWORK, "--url"),
        ],
        takes=CURL_TAKES,
    ),
    Program(
        "wget|aria2c|axel",
        [
            Does(Effect.WRITE, "-O --output-document -P --directory-prefix -o --output-file"),
            Does(Effect.READ, "--post-file --body-file -i"),
            Does(
                Effect.UPLOAD,
                "operands",
                given="--post-data --post-file --body-data --body-file",
                says="send data to another machine",
            ),
            Does(Effect.NETWORK, "operands"),
        ],
        takes=WGET_TAKES,
    ),
    Program(
        "http|https|xh|lynx|w3m|links|httpie|grpcurl|websocat",
        [Does(Effect.NETWORK, "operands")],
        takes="-a --auth -o --output",
    ),
    Program(
        "sftp|lftp|ftp|tftp|ssh-copy-id",
        [Does(Effect.UPLOAD, "operands", says="copy files between machines")],
        takes="-b -i -P -p -o -c -e -u -F",
        runs="-e",
    ),
    Program(
        "scp|rsync|rclone|ncftpput",
        [
            Does(Effect.UPLOAD, words=r"^[^/\s]+:|^\w+://", says="copy files between machines"),
            Does(
                Effect.DELETE_TREE,
                "last",
                given="--delete --delete-before --delete-after --delete-during --delete-excluded --del",
                says="delete what the copy does not have in {path}",
            ),
            Does(Effect.DELETE, "but_last", given="--remove-source-files"),
            Does(Effect.READ, "but_last"),
            Does(Effect.WRITE, "last"),
        ],
        takes="-e --rsh -P -i -o -F -c -S --exclude --include --filter --exclude-from --include-from "
        "--files-from --port "
        "--bwlimit --rsync-path --backup-dir --suffix --link-dest --compare-dest -T --temp-dir --partial-dir "
        "--log-file",
        runs="-e --rsh --rsync-path",
    ),
    Program(
        "rclone",
        [
            Does(Effect.CLOUD_LOSS, words=r"^(delete|purge|sync|move|deletefile|cleanup)$", says="delete remote files"),
            Does(Effect.UPLOAD, words=r"^(copy|copyto|moveto|rcat)$", says="copy files between machines"),
        ],
    ),
    Program(
        "nc|ncat|netcat|socat|telnet",
        [
            Does(Effect.GIVE_SHELL, given="-e -c --exec --sh-exec", says="give another machine a shell"),
            Does(Effect.GIVE_SHELL, words=r"(?i)\b(exec|system):", says="give another machine a shell"),
            Does(Effect.LISTEN, given="-l --listen", says="listen for other machines"),
            Does(Effect.NETWORK, "first", unless="-l --listen"),
        ],
        takes="-p -w -q -s -e -c --exec --sh-exec -i -x -X",
    ),
    Program(
        "nmap|masscan|hydra|sqlmap|nikto|tcpdump|tshark|ettercap|arpspoof|aircrack-ng|john|hashcat|msfconsole|msfvenom"
        "|responder|mimikatz|hping3|slowloris",
        [Does(Effect.NETWORK, words=".", says="probe machines or networks")],
    ),
    Program(
        "mail|mailx|sendmail|mutt|msmtp|swaks",
        [Does(Effect.UPLOAD, words=".", says="send mail")],
        takes="-s -a -c -b -r",
    ),
    Program(
        "ngrok|cloudflared|localtunnel|lt|bore|frpc|chisel",
        [Does(Effect.LISTEN, says="open this machine to others")],
        unless="version",
    ),
    Program("dig|nslookup|host|ping|traceroute|whois|ping6|mtr", []),
    Program(
        "aws",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(rm|rb|delete-.*|terminate-.*|remove-.*|purge-.*|deregister-.*|destroy.*)$",
                says="delete in the cloud",
            ),
            Does(Effect.CLOUD_LOSS, given="--delete", says="delete in the cloud"),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(create-.*|put-.*|update-.*|modify-.*|attach-.*|run-instances|stop-.*|reboot-.*|cp|mv|sync|invoke)$",
                says="change the cloud",
            ),
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(get-secret-value|get-session-token|get-login-password|get-parameters?(-by-path)?|create-access-key"
                r"|export-credentials|assume-role|get-federation-token)$",
                says="show secrets",
            ),
        ],
        takes="--profile --region --output --query",
        unless="--dryrun --dry-run",
    ),
    Program(
        "gcloud|gsutil|az|doctl|linode-cli|hcloud|oci|ibmcloud|flyctl|fly|heroku|vercel|netlify|firebase|supabase|wrangler|render|railway|eksctl",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(delete|rm|rb|destroy|remove|purge|.*:destroy|.*:delete|projects:delete|.*:reset|deallocate|delete-.*)$",
                says="delete in the cloud",
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(create|deploy|update|set|stop|restart|scale|apply|ssh|merge|close|edit|publish|up|secret|resize|add-iam-policy-binding)$",
                says="change the cloud",
            ),
            Does(Effect.CLOUD_CHANGE, given="-X --method -f --field", says="change the cloud"),
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(print-access-token|print-identity-token|get-access-token|token|auth:token|config:get|secrets?)$",
                says="show secrets",
            ),
        ],
        takes="--project --region --zone -p -g -n --name -R --repo --format",
    ),
    Program(
        "gh|glab",
        [
            Does(Effect.CLOUD_LOSS, words=r"^(delete|remove|archive)$", says="delete what others see"),
            Does(
                Effect.CLOUD_CHANGE, words=r"^(merge|rename|deploy|enable|disable|ssh-key|gpg-key)$", says=CHANGES_HOST
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-X --method -f -F --field --raw-field --input",
                words="^api$",
                says=CHANGES_HOST,
            ),
            Does(Effect.SHOW_SECRETS, words=r"^token$", says="show secrets"),
        ],
        takes="-R --repo -t --title -b --body -F --body-file -X --method -f --field --input --raw-field -q --jq -L "
        "--label",
    ),
    Program(
        "gh release|gh repo|gh gist|gh secret|gh variable|gh workflow|gh cache|gh ruleset|glab release|glab repo"
        "|glab variable",
        [Does(Effect.CLOUD_CHANGE, words=r"^(create|edit|set|run|upload|sync)$", says=CHANGES_HOST)],
        takes="-R --repo",
    ),
    Program(
        "terraform|tofu|terragrunt|pulumi|cdk|serverless|sls|copilot",
        [
            Does(Effect.CLOUD_LOSS, words=r"^(destroy|remove|rm|taint|force-unlock)$", says="destroy infrastructure"),
            Does(Effect.CLOUD_LOSS, given="-destroy --destroy", says="destroy infrastructure"),
            Does(Effect.CLOUD_CHANGE, words=r"^(apply|up|deploy|import|run-all)$", says="change infrastructure"),
        ],
        long_style=True,
        unless="-help --help",
    ),
    Program(
        "kubectl|oc|k|helm|k9s|argocd|flux",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(delete|drain|uninstall|del|rollback|evict)$",
                says="delete from the cluster",
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(apply|create|replace|patch|edit|scale|set|rollout|cordon|taint|exec|cp|run|expose|annotate|label"
                r"|install|upgrade|port-forward|attach|debug)$",
                says="change the cluster",
            ),
            Does(Effect.SHOW_SECRETS, words=r"^(secrets?|secret/.*)$", says="show secrets"),
        ],
        takes="-n --namespace --context -f -l -o --output --kubeconfig -c --selector",
        unless="--dry-run",
    ),
    Program(
        "ansible|ansible-playbook|salt|puppet|chef-client|fab|cap",
        [
            Does(
                Effect.CLOUD_CHANGE,
                unless="--check -C --list-hosts --syntax-check --version",
                says="change other machines",
            )
        ],
    ),
    Program(
        "psql|mysql|mariadb|sqlite3|mongosh|mongo|redis-cli|clickhouse-client|cqlsh|sqlcmd|duckdb|cockroach|bq|influx",
        [
            Does(
                Effect.DATABASE_LOSS,
                words=r"(?i)\b(drop|truncate|delete\s+from|flushall|flushdb|dropdatabase|deletemany|alter\s+table.*drop"
                r"|shutdown|update\s+\w+\s+set(?!.*\bwhere\b))\b|\.drop\(|^rm$",
                says="delete from a database",
            )
        ],
        takes="-h -U -p -P -d --host --port --user --username --dbname -u -a -n",
    ),
    Program("sqlite3|duckdb", [Does(Effect.READ, "first")], takes="-cmd -init -separator", long_style=True),
    Program("ssh-keygen", [Does(Effect.WRITE, "-f")], takes="-f -t -b -C -N -P -I -n -V -z -O", unless="-l -y -F -B"),
    Program(
        "dropdb|dropuser|mysqladmin",
        [Does(Effect.DATABASE_LOSS, words=r".", says="delete a database")],
        takes="-h -U -p -u",
    ),
    Program(
        "security|secret-tool",
        [
            Does(
                Effect.TAKE_KEYS, words=r"^(find-\w+-password|dump-keychain|export|lookup|search)$", says="show secrets"
            )
        ],
        takes="-s -a -w",
    ),
    Program(
        "op|vault|pass|bw|lpass|security|secret-tool|gopass|chamber|doppler|keyring",
        [
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(read|get|show|item|kv|find-.*|dump-keychain|lookup|export|secrets|run|ls|list|unlock|.*password.*)$",
                says="show secrets",
            )
        ],
    ),
    Program(
        "gpg|gpg2",
        [
            Does(
                Effect.TAKE_KEYS,
                given="--export-secret-keys --export-secret-subkeys",
                unless="--export",
                says="show secret keys",
            ),
            Does(
                Effect.TAKE_KEYS,
                given="--delete-secret-keys --delete-secret-key --delete-secret-and-public-key",
                says="delete secret keys",
            ),
        ],
        takes="-r -o --output -u",
    ),
)
