"""Programs that read, write, delete, copy and mark files."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["FILES"]

RECURSIVE = "-r -R --recursive"
READERS = (
    "cat|tac|nl|head|tail|less|more|wc|sort|uniq|cut|paste|join|comm|column|fold|fmt|expand|unexpand|rev|od|xxd|hexdump"
    "|strings|file|stat|md5sum|sha1sum|sha256sum|sha512sum|b2sum|cksum|diff|cmp|diff3|sdiff|colordiff|base64|base32|bat"
    "|zcat|bzcat|xzcat|zless|iconv|look|pr|tsort|csplit|jq|xmllint|view|source-highlight|pygmentize|glow"
    "|batcat|shasum|md5"
)

SEARCHES = (
    Does(Effect.READ, "rest"),
    Does(Effect.READ, "operands", given="-e --regexp -f --file"),
    Does(Effect.READ, "-f --file"),
)
BELOW = Does(Effect.READ_TREE, "rest")
BELOW_WHEN_TOLD = Does(Effect.READ_TREE, "rest", given="-r -R --recursive")
PATTERNS = "-e --regexp -f -A -B -C -m --max-count --context"

FILES = (
    # Hardly an option here has a value: what one of these programs takes as a value (`head -n 5`), another does not
    # (`cat -n .env`). That a number, or a separator, is called a file that is read, does no harm.
    Program(
        READERS,
        [
            Does(Effect.READ, "operands"),
            Does(Effect.READ, "-f --from-file --files0-from"),
        ],
        takes="-f",
    ),
    Program(
        "sort|iconv|xmllint|pygmentize|source-highlight|less|sdiff|column|pr|shuf",
        [Does(Effect.WRITE, "-o --output")],
        takes="-o --output --compress-program",
        runs="--compress-program",
    ),
    Program("grep|egrep|fgrep|zgrep", [*SEARCHES, BELOW_WHEN_TOLD], takes=f"{PATTERNS} -d -D --include --exclude-dir"),
    Program(
        "rg|ripgrep",
        [*SEARCHES, BELOW],
        takes=f"{PATTERNS} -g --glob -t --type-not -T -d --max-depth -M -j --color -r --replace",
    ),
    Program("ag|ack", [*SEARCHES, BELOW], takes=f"{PATTERNS} -g -G"),
    Program(
        "sed|gsed",
        [
            Does(Effect.READ, "rest", unless="-i --in-place"),
            Does(Effect.READ, "operands", given="-e --expression -f --file", unless="-i --in-place"),
        ],
        takes="-e -f -l --expression --line-length",
    ),
    Program(
        "ls|dir|vdir|tree|du|exa|eza|lsd|readlink|realpath|namei|getfacl|lsattr|ncdu",
        [Does(Effect.LIST, "operands")],
    ),
    Program(
        "rm|unlink|grm|trash|rimraf|del-cli|srm",
        [
            Does(Effect.DELETE_TREE, "operands", given=RECURSIVE, says="delete {path} recursively"),
            Does(Effect.DELETE, "operands", unless=RECURSIVE),
        ],
    ),
    Program(
        "gio|trash-put|gvfs-trash|kioclient5",
        [
            Does(
                Effect.DELETE_TREE,
                "rest",
                words="^(trash|remove|rm)$",
                match=("gio trash ~/work",),
                not_match=("gio info x",),
            )
        ],
    ),
    Program(
        "openssl|age|ccrypt|gocryptfs",
        [
            Does(
                Effect.READ,
                "-inkey -i",
                match=("openssl pkeyutl -inkey ~/.ssh/id_rsa", "age -d -i ~/.ssh/id_rsa x.age"),
                not_match=("openssl rand -hex 8",),
            ),
            Does(
                Effect.READ,
                "-in",
                first=r"^(?!(x509|verify|crl|req|asn1parse|ts|dgst)$)",
                match=("openssl rsa -in ~/.ssh/id_rsa", "openssl pkcs12 -in x.p12"),
                not_match=("openssl x509 -in ~/.ssh/x.pem -noout -text", "openssl rand -hex 8"),
            ),
            Does(Effect.WRITE, "-out -keyout -o", match=("openssl rand -out ~/x 8",), not_match=("openssl version",)),
        ],
        takes="-in -out -inkey -i -o -keyout",
        long_style=True,
    ),
    Program("rimraf|srm", [Does(Effect.DELETE_TREE, "operands", says="delete {path} recursively")]),
    Program("rmdir", [Does(Effect.DELETE, "operands")]),
    Program(
        "shred",
        [Does(Effect.DELETE, "operands", says="destroy the content of {path}")],
        takes="-n -s --iterations --size --random-source",
    ),
    Program("wipe|scrub", [Does(Effect.DELETE, "operands", says="destroy the content of {path}")]),
    Program(
        "truncate",
        [
            Does(Effect.WRITE, "operands", says="cut {path}"),
            Does(
                Effect.DELETE,
                "operands",
                given="-s --size",
                values="^0$",
                says="empty {path}",
                match=("truncate -s 0 ~/x.db",),
                not_match=("truncate -s 10 x",),
            ),
        ],
        takes="-s -r --size --reference",
    ),
    Program("fallocate", [Does(Effect.WRITE, "operands")], takes="-l -o --length --offset"),
    Program(
        "mv|gmv",
        [
            Does(Effect.DELETE, "but_last", says="move {path} away"),
            Does(Effect.WRITE, "last"),
            Does(Effect.DELETE, "operands", given="-t --target-directory", says="move {path} away"),
            Does(Effect.WRITE, "-t --target-directory"),
        ],
        takes="-t --target-directory -S --suffix",
    ),
    Program(
        "cp|gcp|install|ditto",
        [
            Does(Effect.READ, "but_last"),
            Does(Effect.WRITE, "last"),
            Does(Effect.READ_TREE, "but_last", given="-r -R --recursive -a --archive"),
            Does(Effect.READ, "operands", given="-t --target-directory"),
            Does(Effect.WRITE, "-t --target-directory"),
            Does(
                Effect.SETUID, "last", given="-m --mode", values=r"^[4267]\d{3}$|s", says="make {path} run as its owner"
            ),
        ],
        takes="-t --target-directory -S --suffix -m --mode -o --owner -g --group",
    ),
    Program(
        "ln|link|symlink",
        [Does(Effect.WRITE, "last"), Does(Effect.READ, "but_last"), Does(Effect.WRITE, "-t --target-directory")],
        takes="-t --target-directory -S --suffix",
    ),
    Program("mkdir|mkfifo|mknod", [Does(Effect.WRITE, "operands")], takes="-m --mode"),
    Program(
        "touch",
        [
            Does(Effect.WRITE, "operands"),
            Does(
                Effect.COVER_TRACKS,
                given="-r --reference",
                values=r"^/(usr/|s?bin/|etc/|lib)",
                says="make a file look as old as one of the system",
                match=("touch -r /bin/ls x", "touch --reference=/etc/passwd x"),
                not_match=("touch -r a b",),
            ),
        ],
        takes="-d --date -t -r --reference",
    ),
    Program("tee|sponge", [Does(Effect.WRITE, "operands")]),
    Program(
        "split",
        [Does(Effect.READ, "first"), Does(Effect.WRITE, "rest")],
        takes="-b -l -n -a -C -t --bytes --lines --line-bytes --number --suffix-length --additional-suffix --separator "
        "--filter",
        runs="--filter",
    ),
    Program(
        "patch",
        [
            Does(Effect.WRITE, "first"),
            Does(Effect.READ, "-i --input"),
            Does(Effect.WRITE, "-o --output -d --directory"),
        ],
        takes="-i --input -o --output -d --directory -p --strip -D -B -r",
    ),
    Program(
        "dd",
        [
            Does(Effect.RAW_COPY),
            Does(Effect.WRITE, "of=", says="write raw bytes over {path}"),
            Does(Effect.READ, "if="),
        ],
    ),
    Program(
        "tar|gtar|bsdtar",
        [
            Does(Effect.WRITE, "-C --directory", unless="-c --create -r -u -t --list"),
            Does(Effect.WRITE, "-f --file", given="-c --create -r -u --append"),
            Does(Effect.READ, "operands", given="-c --create -r -u --append"),
            Does(Effect.READ_TREE, "operands", given="-c --create -r -u --append"),
            Does(Effect.READ, "-f --file", unless="-c --create"),
            Does(Effect.DELETE_TREE, "operands", given="--remove-files"),
            Does(Effect.RISKY_CODE, given="--to-command --checkpoint-action", says="start another program as it goes"),
            Does(Effect.WRITE, "", given="-P --absolute-names", says="unpack to absolute paths"),
        ],
        takes="-f --file -C --directory -X -T --exclude --strip-components --transform -I --use-compress-program "
        "--to-command --checkpoint-action --rsh-command -F --info-script --new-volume-script",
        runs="--to-command --checkpoint-action --use-compress-program -I --rsh-command -F --info-script "
        "--new-volume-script",
    ),
    Program("unzip", [Does(Effect.READ, "operands"), Does(Effect.WRITE, "-d")], takes="-d"),
    Program("zip|ar|cpio", [Does(Effect.READ, "operands")]),
    Program("7z|7za|unrar", [Does(Effect.READ, "operands"), Does(Effect.WRITE, "-o")], takes="-o"),  # 7z x -o/etc x.7z
    Program(
        "zip",
        [Does(Effect.RISKY_CODE, given="-TT --unzip-command", says="start another program for what it packs")],
        long_style=True,
    ),
    Program(
        "gzip|gunzip|bzip2|bunzip2|xz|unxz|zstd|unzstd|lz4|pigz",
        [
            Does(Effect.READ, "operands"),
            Does(
                Effect.WRITE,
                "operands",
                unless="-c --stdout --to-stdout -l --list -t --test",
                says="put another file in place of {path}",
                match=("gzip -d ~/x.gz", "xz ~/x"),
                not_match=("gzip -c x", "xz --list x.xz"),
            ),
        ],
    ),
    Program(
        "zip",
        takes="-TT --unzip-command",
        runs="-TT --unzip-command",
        long_style=True,
        match=("zip x.zip y -T -TT 'rm -rf ~ #'",),
        not_match=("zip -r x.zip y",),
    ),
    Program(
        "zip",
        [
            Does(Effect.DELETE, "rest", given="-m --move", unless="-r", match=("zip -m x.zip ~/a",)),
            Does(
                Effect.DELETE_TREE,
                "rest",
                given="-m --move",
                match=("zip -rm x.zip ~/docs",),
                not_match=("zip -r x.zip y",),
            ),
        ],
    ),
    Program(
        "7z|7za|7zz|rar",
        [
            Does(
                Effect.DELETE_TREE,
                "operands",
                given="-sdel -df -dr",
                match=("7z a -sdel x.7z ~/docs",),
                not_match=("7z a x.7z y",),
            )
        ],
        long_style=True,
    ),
    Program("zip|7z|7za", [Does(Effect.READ_TREE, "rest", given="-r --recurse-paths")]),
    Program("man", [], takes="-P --pager -H", runs="-P --pager -H --html"),
    Program(
        "chmod",
        [
            Does(
                Effect.OPEN_TO_ALL,
                words=r"^(0?[0-7]?777|0?[0-7]?666|a?\+rwx|[ugo]*[ao][ugoa]*[+=][rwxXst]*w[rwxXst]*|\+.*w.*"
                r"|a=rwx|[ugo]+=rwx,.*)$",
                says="open {path} to everybody",
                to="rest",
            ),
            Does(
                Effect.SETUID,
                "rest",
                words=r"^(0?[4267][0-7]{3}|[ugoa]*[+=][rwxX]*s[rwxX]*)$",
                says="make {path} run as its owner",
            ),
            Does(Effect.PERMISSIONS, "rest"),
            Does(
                Effect.PERMISSIONS,
                "operands",
                given="-x -w -r -X -s -t",
                match=("chmod -x /bin/ls",),
                not_match=("chmod --help",),
            ),
            Does(Effect.PERMISSIONS, "operands", given="--reference"),
        ],
        takes="--reference",
    ),
    Program("chattr", [Does(Effect.PERMISSIONS, "operands")], takes="-v -p"),
    Program(
        "setfacl|setfattr",
        [Does(Effect.PERMISSIONS, "operands")],
        takes="-m -x -M -X --modify --remove --restore",
    ),
    Program(
        "chown|chgrp",
        [
            Does(Effect.PERMISSIONS, "rest"),
            Does(Effect.PERMISSIONS, "operands", given="--reference", match=("chown --reference=x /etc/passwd",)),
        ],
        takes="--reference",
    ),
    Program("chflags|xattr", [Does(Effect.PERMISSIONS, "rest")]),
    Program(
        "chcon",
        [
            Does(Effect.PERMISSIONS, "rest"),
            Does(
                Effect.PERMISSIONS,
                "operands",
                given="-u --user -r --role -t --type -l --range --reference",
                match=("chcon -t bin_t /etc/x",),
            ),
        ],
        takes="-u --user -r --role -t --type -l --range --reference",
    ),
    Program("setcap", [Does(Effect.SETUID, "operands", says="give a program the powers of the system")]),
)
