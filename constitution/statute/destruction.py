"""Rules about deleting and overwriting."""

from constitution.effects import Effect, Zone
from constitution.rule import Rule
from constitution.statute.places import BEYOND, CRITICAL
from constitution.verdict import Level

__all__ = ["DESTRUCTION"]

ask, deny = Level.ask, Level.deny

DESTRUCTION = (
    Rule(
        "delete_outside_workspace",
        "destruction",
        Effect.DELETE_TREE,
        BEYOND,
        deny,
        match=(
            "rm -rf /",
            "rm -rf ~",
            "rm -fr /*",
            "rm --recursive --force /usr",
            "find / -name '*.log' -delete",
            "'r'm -r -f \"$HOME\"",
            "cd / && rm -rf *",
            "rm -rf ../other",
        ),
        near_miss=(
            "rm -rf build",
            "rm -rf ./node_modules",
            "echo rm -rf /",
            "rm -rf /tmp/job-17",
            "grep -r 'rm -rf /' .",
        ),
    ),
    Rule(
        "delete_important_file",
        "destruction",
        Effect.DELETE,
        CRITICAL,
        deny,
        match=("rm /etc/hosts", "unlink /bin/sh", "rm ~/.aws/credentials", "shred /dev/sda", "rm /usr/lib/libc.so"),
        near_miss=("rm notes.txt", "rm -f a.pyc b.pyc", "git rm --cached /ws/x", "mv a b", "rmdir build"),
    ),
    Rule(
        "delete_file_outside_workspace",
        "destruction",
        Effect.DELETE,
        (Zone.HOME, Zone.KEEPS_SECRETS, Zone.OUTSIDE, Zone.PRIVATE_OUTSIDE, Zone.STARTUP),
        ask,
        match=(
            "rm ~/work/.env",
            "rm ~/notes.txt",
            "rm /srv/x/y",
            "mv ~/a .",
            "rm ../../home/me/x",
            "shred -u ~/draft.md",
        ),
        near_miss=("rm ./notes.txt", "rm /tmp/x", "ls ~/notes.txt", "cp ~/notes.txt .", "rm --help"),
    ),
    Rule(
        "delete_whole_workspace",
        "destruction",
        (Effect.DELETE_TREE, Effect.DELETE),
        (Zone.WORKSPACE_ROOT, Zone.SCRATCH_ROOT),
        ask,
        match=("rm -rf .", "rm -rf *", "rm -rf /ws", "find . -delete", "rm -rf ./*", "rm -rf /tmp/*"),
        near_miss=("rm -rf dist/*", "rm *.pyc", "find . -name '*.pyc' -delete", "ls *", "rm -rf /ws/build"),
    ),
    Rule(
        "delete_history",
        "destruction",
        (Effect.DELETE_TREE, Effect.DELETE, Effect.WRITE),
        (Zone.VERSION_CONTROL,),
        ask,
        match=(
            "rm -rf .git",
            "rm .git/index",
            "mv .git /tmp/x",
            "echo x > .git/hooks/pre-commit",
            "cp evil.sh .git/hooks/post-merge",
        ),
        near_miss=("cat .git/config", "ls .git", "rm .gitignore", "git status", "echo x > .gitignore"),
    ),
    Rule(
        "delete_unknown_path",
        "destruction",
        (Effect.DELETE_TREE, Effect.DELETE),
        (Zone.UNKNOWN, Zone.PARTLY_KNOWN),
        ask,
        match=("rm -rf $UNKNOWN", 'rm -rf "$DIR"/*', "cat list | xargs rm", "rm $(cat list)", "rm -rf build/$NAME"),
        near_miss=(
            "DIR=build; rm -rf $DIR",
            "echo $UNKNOWN",
            "for f in a b; do rm $f; done",
            "find . -name '*.o' | xargs rm",
            't=$(mktemp -d); rm -rf "$t"',
        ),
    ),
    Rule(
        "write_to_system",
        "destruction",
        Effect.WRITE,
        (Zone.SYSTEM, Zone.DEVICE, Zone.SECRET),
        deny,
        match=(
            "> /etc/hosts",
            "echo x | tee /etc/cron.d/job",
            "cp x /usr/bin/ls",
            "dd if=/dev/zero of=/dev/sda",
            "cat x >> ~/.netrc",
            "ln -sf /tmp/x /usr/local/bin/ls",
            "sed -i s/a/b/ /etc/fstab",
            "tar -C / -xf x.tar",
        ),
        near_miss=(
            "echo x > out.txt",
            "ls > /dev/null 2>&1",
            "cp /etc/hosts .",
            "dd if=/dev/zero of=disk.img count=1",
            "sed -i s/a/b/ src/x.py",
        ),
    ),
    Rule(
        "write_outside_workspace",
        "destruction",
        Effect.WRITE,
        (Zone.HOME, Zone.HOME_ROOT, Zone.KEEPS_SECRETS, Zone.STARTUP, Zone.OUTSIDE, Zone.PRIVATE_OUTSIDE),
        ask,
        match=("echo x > ~/notes.txt", "echo 'alias ls=rm' >> ~/.bashrc", "cp x ~", "touch /srv/app/x", "mkdir ~/new"),
        near_miss=("echo x > notes.txt", "cp x /tmp/", "touch a", "mkdir -p src/new", "cp ~/notes.txt notes.txt"),
    ),
    Rule(
        "write_to_unknown_path",
        "destruction",
        Effect.WRITE,
        (Zone.UNKNOWN,),
        ask,
        match=("echo x > $OUT", 'cp a "$B"', "tee $(cat name) < x", "dd if=a of=$DISK", "mv a $WHERE"),
        near_miss=("OUT=x; echo a > $OUT", "echo x > logs/$NAME.txt", "cat $IN", "ls $DIR", "echo $OUT"),
    ),
    Rule(
        "format_disk",
        "destruction",
        Effect.FORMAT,
        (),
        deny,
        match=(
            "mkfs.ext4 /dev/sdb1",
            "mkfs -t ext4 disk",
            "wipefs -a /dev/sda",
            "mkswap /dev/sdb",
            "parted /dev/sda rm 1",
        ),
        near_miss=("man mkfs", "lsblk", "fdisk -l", "echo mkfs", "which mkfs.ext4"),
    ),
    Rule(
        "fork_bomb",
        "exhaustion",
        Effect.FORK_BOMB,
        (),
        deny,
        match=(
            ":(){ :|:& };:",
            "bomb() { bomb | bomb & }; bomb",
            "f() { f & f; }; f",
            "function b { b|b& }; b",
            ":() { : | : & }; :",
        ),
        near_miss=(
            "f() { echo hi; }; f",
            "f() { ls | wc; }; f",
            "sleep 1 & wait",
            "g() { f; }; f() { ls; }; g",
            "echo ':(){ :|:& };:'",
        ),
    ),
    Rule(
        "exhaust_machine", "exhaustion", Effect.EXHAUST, (), ask, match=("stress --cpu 64",), near_miss=("echo stress",)
    ),
)
