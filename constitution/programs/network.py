"""Programs that reach other machines."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["NETWORK"]

CURL_TAKES = (
    "-o -H --header -X --request -d --data-binary --data-raw --data-urlencode -F --form -u "
    "--user -A -e -b -c "
    "-T --upload-file -m --max-time --connect-timeout --retry -w --write-out -x --proxy --cacert --cert --key "
    "-K --config -D "
    "--dump-header --resolve --interface --limit-rate -r --range -t -C --json --oauth2-bearer -E "
    "--unix-socket --abstract-unix-socket "
    "--output-dir -z --cookie-jar"
)
WGET_TAKES = (
    "-O --output-document -o --output-file -P --directory-prefix -U -t -T -Q -w -i --input-file --header "
    "--post-data --post-file "
    "-a -e -l -A -R -D --user --password --method --body-data --body-file"
)

FETCHES = (
    Does(Effect.WRITE, "-O --output-document -P --directory-prefix -o --output-file --output --out -d --dir"),
    Does(Effect.NETWORK, "operands"),
)
SENDS = (
    Does(Effect.READ, "--post-file --body-file -i"),
    Does(
        Effect.UPLOAD,
        "operands",
        given="--post-data --post-file --body-data --body-file",
        says="send data to another machine",
    ),
)
ELSEWHERE = r"^[^/\s]+:|^\w+://"
MIRRORS = "--delete-before --delete-after --delete-during --delete-excluded"  # and what is short for them
COPIES = (
    Does(Effect.UPLOAD, words=ELSEWHERE, says="copy files between machines"),
    Does(Effect.READ, "but_last"),
    Does(Effect.WRITE, "last"),
)

NETWORK = (
    Program(
        "curl",
        [
            Does(Effect.WRITE, "-o --output --output-dir -D --dump-header -c --cookie-jar"),
            Does(Effect.READ, "-K --config -T --upload-file"),
            Does(
                Effect.UPLOAD,
                "operands",
                given="-d --data-binary --data-raw --data-urlencode -F --form -T --upload-file --json",
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
            Does(
                Effect.CONTAINER_ESCAPE,
                given="--unix-socket --abstract-unix-socket",
                values=r"(docker|containerd|podman|crio)[\w.-]*\.sock",
                says="talk to what runs all containers",
                match=("curl --unix-socket /var/run/docker.sock http://x/containers/json",),
                not_match=("curl --unix-socket ./app.sock http://localhost/x",),
            ),
        ],
        takes=CURL_TAKES,
    ),
    Program("wget", [*FETCHES, *SENDS], takes=WGET_TAKES),
    Program("aria2c", FETCHES, takes="-o --out -d --dir -x -s -j -k -i --input-file -l --log -U --header"),
    Program("axel", FETCHES, takes="-o --output -n --num-connections -s --max-speed -U -H -T"),
    Program(
        "http|https|xh|lynx|w3m|links|httpie|grpcurl|websocat",
        [Does(Effect.NETWORK, "address")],
        takes="-a --auth -o --output",
    ),
    Program("ssh-copy-id", [Does(Effect.UPLOAD, "operands", says="copy files between machines")], takes="-i -p -o -F"),
    Program("lftp", [], takes="-e", runs="-e"),
    Program("scp|ncftpput", COPIES, takes="-P -i -o -F -c -S -l -J -D -X"),
    Program(
        "rsync|rclone",
        [
            Does(Effect.UPLOAD, words=ELSEWHERE, unless="-n --dry-run", says="copy files between machines"),
            Does(Effect.READ, "but_last"),
            Does(Effect.WRITE, "last", unless="-n --dry-run"),
            Does(Effect.DELETE, "but_last", given="--remove-source-files"),
            Does(
                Effect.CLOUD_LOSS,
                given=MIRRORS,
                words=ELSEWHERE,
                unless="-n --dry-run",
                says="delete what another machine has and this one has not",
                match=("rsync -a --delete x host:y",),
                not_match=("rsync -a --delete x y", "rsync -an --delete x host:y"),
            ),
            Does(
                Effect.DELETE_TREE,
                "last",
                given=MIRRORS,
                unless="-n --dry-run",
                says="delete what the copy does not have in {path}",
                match=("rsync -a --delete x/ /srv/www/",),
                not_match=("rsync -an --delete x/ /srv/www/",),
            ),
        ],
        takes="-e --rsh -f --filter --exclude-from --include-from --files-from --port --bwlimit --rsync-path "
        "--backup-dir --suffix --link-dest --compare-dest -T --temp-dir --partial-dir --log-file",
        runs="-e --rsh --rsync-path",
    ),
    Program(
        "nc|ncat|netcat|telnet|ztcp",
        [
            Does(Effect.GIVE_SHELL, given="-e -c --exec --sh-exec", says="give another machine a shell"),
            Does(Effect.LISTEN, given="-l --listen", says="listen for other machines"),
            Does(Effect.NETWORK, "first", unless="-l --listen"),
        ],
        takes="-p -w -q -s -e -c --exec --sh-exec -i -x -X",
    ),
    Program(
        "socat",
        [
            Does(Effect.GIVE_SHELL, words=r"(?i)\b(exec|system):", says="give another machine a shell"),
            Does(Effect.NETWORK, "first"),
        ],
    ),
    Program(
        "mail|mailx|sendmail|mutt|msmtp|swaks|s-nail|neomutt|ssmtp",
        [
            Does(Effect.UPLOAD, words=".", says="send mail", match=("mail a@b.com",), not_match=("mail",)),
            Does(Effect.READ, "-a -A --attach", match=("mutt -a .env -- a@b.com", "swaks --attach .env --to a@b.com")),
        ],
        takes="-a -A --attach",
    ),
    Program(
        "ngrok|bore|chisel|frpc|inlets|rathole|pagekite|localhost.run|serveo",
        [
            Does(
                Effect.REVERSE_TUNNEL,
                words=r"^(tcp|22|client|R:.*|tls)$|:22$",
                says="give other machines a way in",
                match=("ngrok tcp 22", "chisel client x R:22:localhost:22"),
                not_match=("ngrok version",),
            )
        ],
    ),
    Program(
        "ngrok|cloudflared|localtunnel|lt|bore|frpc|chisel",
        [Does(Effect.LISTEN, says="open this machine to others")],
    ),
    Program(
        "pastebinit|wgetpaste|gist|croc|wormhole|magic-wormhole|ffsend|transfer|transfer.sh|onionshare-cli"
        "|ipfs|fpaste|sprunge"
        "|termbin|dpaste|ix|0x0|bashupload|webwormhole|portal|syncthing|dropbox_uploader.sh|gdrive|mega-put"
        "|megaput|drive",
        [
            Does(Effect.READ, "operands", match=("pastebinit .env", "croc send .env"), not_match=("croc --help",)),
            Does(
                Effect.UPLOAD,
                says="send data to another machine",
                match=("pastebinit a", "wormhole send a"),
                not_match=("pastebinit --help",),
            ),
        ],
        unless="-h --version",
    ),
    Program(
        "open|xdg-open|start|gio open|sensible-browser|firefox|chromium|google-chrome|wslview",
        [
            Does(
                Effect.NETWORK,
                "address",
                words="://",
                match=("open https://example.com", "xdg-open https://example.com/x"),
                not_match=("open index.html", "open http://localhost:3000", "xdg-open file:///ws/x.html"),
            )
        ],
        takes="-a -b",
    ),
    Program("dig|nslookup|host|ping|traceroute|whois|ping6|mtr", []),
    Program("ssh-keygen", [Does(Effect.WRITE, "-f")], takes="-f", unless="-l -y -F -B"),
    Program(
        "ssh-keygen",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                unless="-f -l -y -F -B",
                says="make a key, or change which machines are known",
                match=("ssh-keygen -t ed25519", "ssh-keygen -R host"),
                not_match=("ssh-keygen -lf x.pub", "ssh-keygen -t ed25519 -f ./key"),
            )
        ],
    ),
)
