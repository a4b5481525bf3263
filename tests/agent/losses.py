"""A workspace with all kinds of files, ways to lose work in it, random edits, and what counts of a folder."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path


def digest(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that counts of a folder: kinds, modes, times, links and contents."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        content = (
            os.readlink(path) if path.is_symlink() else sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        )
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


NAMES = ("a", "b", "ü", "c.py", "\udcff")


class Edits:
    """Random changes of a folder, as commands make them."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.chance = root, random.Random(seed)

    def path(self) -> Path:
        return self.root.joinpath(*self.chance.choices(NAMES, k=self.chance.randint(1, 3)))

    def one(self) -> None:
        path, edit = (
            self.path(),
            self.chance.choice(
                [self.write, self.write, self.folder, self.link, self.remove, self.mode, self.move, self.touch]
            ),
        )
        with suppress(OSError):
            edit(path)

    def several(self) -> None:
        for _ in range(3):
            self.one()

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.chance.randbytes(self.chance.choice([0, 1, 20])))

    def folder(self, path: Path) -> None:
        path.mkdir(parents=True)

    def link(self, path: Path) -> None:
        path.symlink_to(self.chance.choice(["a", "../nowhere/x", "/nowhere/x"]))

    def remove(self, path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def mode(self, path: Path) -> None:
        if not path.is_symlink():
            path.chmod(self.chance.choice([0o755, 0o700] if path.is_dir() else [0o644, 0o600, 0o444, 0o755]))

    def move(self, path: Path) -> None:
        path.rename(self.path())

    def touch(self, path: Path) -> None:
        os.utime(path, ns=(5, self.chance.randrange(1 << 60)), follow_symlinks=False)


def shell(script: str) -> Callable[[Path], object]:
    return lambda root: subprocess.run(["bash", "-c", script], cwd=root, check=True, capture_output=True)


GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"
REPOSITORY = f"""
{GIT} init -q . && echo 'data/\n*.db\nnode_modules' > .gitignore && mkdir src data
echo 1 > src/a.py && echo x > data/m.csv && echo db > app.db && echo draft > notes.txt
{GIT} add -A && {GIT} commit -qm one && echo unsaved >> src/a.py
mkdir -p lib/inner && echo 1 > lib/inner/f
cd lib/inner && {GIT} init -q && {GIT} add f && {GIT} commit -qm in && cd ../..
printf 'import shutil\\nfor name in ("objects", "refs"):\\n    shutil.rmtree(".git/" + name)\\n' > damage.py
head -c 10000000 /dev/urandom > large && echo large >> .git/info/exclude
mkdir empty && ln -s src link && ln -s nowhere dangling && chmod 600 notes.txt
mkdir -p "odd$(printf '\\n')name" && touch 'a b' -- -x
"""

LOSSES = """
rm -rf data
: > app.db
rm -rf data/* src
touch notes.txt; rm notes.txt
echo mine > notes.txt
git checkout -q src/a.py
git clean -qfdx
git reset -q --hard
git stash -q -u
mkdir ../lost; mv notes.txt ../lost
mv data data2
rm -rf lib
rm -rf lib/inner/.git
rm -rf .git/objects
rm -rf .git
rm .git/HEAD
find . -type f -delete
chmod -R 700 .
ln -sf /etc/passwd notes.txt
rm link; mkdir link
rm -rf src; echo file > src
rmdir empty
mkdir -p new/deep/er; echo 1 > new/deep/er/f
touch -d 2001-01-01 src/a.py
python3 -c "open('app.db','r+').write('XX')"
cp -r src src2; rm -rf src; mv src2 src
truncate -s 9999 data/m.csv
rm dangling; echo 1 > dangling
git clone -q . copy
sed -i s/1/2/ src/a.py
python3 damage.py
python3 -c "import os; [os.unlink(each.path) for each in os.scandir('.') if each.is_file()]"
python3 -c "f = open('large', 'r+b'); f.seek(9000000); f.write(b'changed')"
mv notes.txt /tmp/x; rm /tmp/x
git restore -q '*.py'
find . -name '?*' -path './data*' -delete
python3 -c "import sqlite3; d = sqlite3.connect('wal.db'); d.execute('update t set n = 2'); d.commit()"
dd if=/dev/zero of=large bs=1M count=1 status=none
cp data/m.csv notes.txt; cat app.db | tee data/m.csv src/a.py
(sleep 0.01; rm notes.txt) & wait
""".strip().splitlines()
"""Ways to lose work inside a workspace."""
