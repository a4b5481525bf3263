"""Contents by their SHA-256 names, in packs of git's format: `git --git-dir FOLDER cat-file -p NAME` reads them too.

Packs are written here: 10,000 files of 1 KB took 0.6 s and 0.7 MB; `git fast-import` took 1.1 s, dulwich 2.0 s (and
0.15 s to import), `git hash-object -w` 3.7 s and 41 MB, dulwich's loose objects 17.5 s. Besides git need not be
installed, and no configuration, hook, filter or attribute of a workspace can reach it.
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO

LARGE = 8 * 1024 * 1024  # bytes from which on a file is kept as it is, beside the packs
PIECE = 1024 * 1024
CLONE = 0x40049409  # the FICLONE of Linux: two files share their blocks until one of them is written

CONFIGURATION = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"

EXTENTS = 0xC020660B  # the FIEMAP of Linux: where the blocks of a file lie
EXTENT = struct.Struct("=20xI8xQQQ16xI12x")  # the answer for one part: how many there are, start, place, length, flags
SHARED = 0x2000

Place = tuple[Path, int, int]
"""A pack, and where an object begins and ends in it."""


class Objects:
    """The contents in a folder of ours; small ones in packs, large ones as plain files."""

    def __init__(self, folder: Path) -> None:
        self._packs, self._large = folder / "objects" / "pack", folder / "large"
        self._places: dict[str, Place] = {}
        self._read: set[str] = set()  # the names of indices
        for made in (self._packs, self._large, folder / "refs"):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in (("config", CONFIGURATION), ("HEAD", "ref: refs/heads/none\n")):
            if not (folder / name).exists():
                (folder / name).write_text(text)

    def refresh(self) -> None:
        """Read the indices of packs that other processes have written, and forget those that they have removed."""
        present = {name for name in os.listdir(self._packs) if name.endswith(".idx")}
        if self._read - present:
            self._places = {name: place for name, place in self._places.items() if _index_of(place[0]) in present}
        self._read &= present
        for index in present - self._read:
            with suppress(FileNotFoundError):  # another process has just merged it
                self._places |= _places(self._packs / index)
                self._read.add(index)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def read(self, name: str) -> bytes:
        """Return a content. Raises OSError or KeyError where it is missing, ValueError where it is damaged."""
        if name not in self._places:
            return (self._large / name).read_bytes()
        content = _content(self._raw(name))
        if name_of(content) != name:
            raise ValueError(f"the kept content {name} is damaged")
        return content

    def _raw(self, name: str) -> bytes:
        """Return an object as it stands in a pack, which another process may have merged meanwhile."""
        try:
            return _part(*self._places[name])
        except FileNotFoundError:
            self.refresh()
            return _part(*self._places[name])

    def write_to(self, name: str, file: int) -> None:
        """Write a content into an open, empty file. Raises what `read` does."""
        if name in self._places:
            _write(file, self.read(name))
            return
        with open(self._large / name, "rb") as kept:
            _copy(kept.fileno(), file)

    @contextmanager
    def writing(self) -> Iterator["Pack"]:
        """Yield a new pack; it counts when the block ends without an error, and leaves nothing behind else."""
        pack = Pack(self, self._packs / f"new-{os.urandom(8).hex()}")
        try:
            yield pack
            pack.finish()
        finally:
            pack.file.close()
            pack.path.unlink(missing_ok=True)
        self.refresh()

    def add_large(self, file: int, room: int) -> tuple[str, int]:
        """Keep an open file as it is; return its name, and the bytes that it took: none where its blocks are shared.

        The name is empty for one that takes more than `room` bytes. Raises OSError.
        """
        copy, size = self._large / f"new-{os.urandom(8).hex()}", os.fstat(file).st_size
        try:
            with open(copy, "xb+") as kept:
                if _share(file, kept.fileno()):
                    size = 0
                elif size > room:
                    return "", 0
                else:
                    _copy(file, kept.fileno())
                name = name_of_file(kept)
            size = 0 if (self._large / name).exists() else size
            copy.replace(self._large / name)
        finally:
            copy.unlink(missing_ok=True)
        return name, size

    def size(self) -> int:
        """Return the bytes of all that is kept."""
        return sum(file.stat().st_size for folder in (self._packs, self._large) for file in os.scandir(folder))

    def real_size(self, current: Collection[str]) -> int:
        """Return the bytes that all takes on the disk: blocks count once, and not if a `current` file has them, too."""
        files = [*self._packs.iterdir(), *self._large.iterdir()]
        taken = {place: length for file in files for place, length, _ in _extents(file)}
        for file in files:
            for place, _, is_shared in _extents(file) if file.name in current else ():
                taken.pop(place if is_shared else 0, None)
        return sum(taken.values())

    def tidy(self) -> None:
        """Merge small packs when there are many: each snapshot adds one, and a snapshot looks at every pack."""
        small = [pack for pack in self._finished() if pack.stat().st_size < SMALL_PACK]
        if len(small) > MOST_SMALL_PACKS:
            self._merge(small, self._places.keys())

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all other contents, at once."""
        for file in self._large.iterdir():
            if file.name not in names:
                file.unlink()
        for file in self._packs.iterdir():
            if file.suffix != ".idx" and not file.with_suffix(".idx").exists():
                file.unlink()  # of a process that was killed
        needed = {pack for name, (pack, *_) in self._places.items() if name in names}
        stale = {pack for name, (pack, *_) in self._places.items() if name not in names}
        self._merge([pack for pack in self._finished() if pack in stale or pack not in needed], names)

    def _finished(self) -> list[Path]:
        return [index.with_suffix(".pack") for index in self._packs.glob("*.idx")]

    def _merge(self, packs: Collection[Path], names: Collection[str]) -> None:
        """Write what these packs hold of the names into one, and remove them."""
        if not packs:
            return
        with self.writing() as merged:
            for name in [name for name, (pack, *_) in self._places.items() if pack in packs and name in names]:
                merged.copy(name, self._raw(name))
        for pack in packs:
            if pack.with_suffix(".idx") != merged.index:
                pack.with_suffix(".idx").unlink()
                pack.unlink()
        self.refresh()


MOST_SMALL_PACKS = 32
SMALL_PACK = 16 * PIECE  # bytes; larger ones are not merged any more


class Pack:
    """A pack that is being written."""

    def __init__(self, objects: Objects, path: Path) -> None:
        self.objects, self.path, self.index = objects, path, path
        self.file = open(path, "xb+")  # noqa: SIM115, closed where it was made
        self._added: dict[str, tuple[int, int]] = {}  # by name: where it begins, and the checksum of its bytes
        self.file.write(struct.pack(">4sII", b"PACK", 2, 0))

    def add(self, content: bytes) -> str:
        """Return the name of a content, which is kept from now on."""
        name = name_of(content)
        if name not in self._added and name not in self.objects:
            self.copy(name, _head(len(content)) + zlib.compress(content, 1))
        return name

    def copy(self, name: str, raw: bytes) -> None:
        """Add an object as it stands in a pack."""
        self._added[name] = self.file.tell(), zlib.crc32(raw)
        self.file.write(raw)

    def finish(self) -> None:
        """Write count, checksum and index; the index comes last, and makes the pack count."""
        if not self._added:
            return
        file = self.file
        file.seek(8)
        file.write(struct.pack(">I", len(self._added)))
        file.seek(0)
        checksum = file_digest(file, "sha256").digest()  # ends at the end of the file
        file.write(checksum)
        file.flush()
        os.fsync(file.fileno())
        pack = self.path.with_name(f"pack-{checksum.hex()}.pack")
        self.path.rename(pack)
        self.index = pack.with_suffix(".idx")
        unfinished = self.path.with_name(f"{self.path.name}-index")
        unfinished.write_bytes(_index(self._added, checksum))
        unfinished.rename(self.index)


def name_of(content: bytes) -> str:
    """Return the name of a content, as git has it in a repository of SHA-256."""
    return sha256(b"blob %d\0" % len(content) + content).hexdigest()


def name_of_file(file: BinaryIO) -> str:
    """Return the name of the content of an open file."""
    digest = sha256(b"blob %d\0" % os.fstat(file.fileno()).st_size)
    file.seek(0)
    while piece := file.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


BLOB = 3
FIRST_OF_INDEX = b"\xfftOc\0\0\0\2"


def _head(size: int) -> bytes:
    """Return what stands before an object in a pack: its kind, and its size in groups of 4, 7, 7, ... bits."""
    head, size = [BLOB << 4 | size & 15], size >> 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)


def _content(raw: bytes) -> bytes:
    start = next(place for place, byte in enumerate(raw) if byte < 128) + 1
    return zlib.decompress(raw[start:])


def _index(added: dict[str, tuple[int, int]], checksum: bytes) -> bytes:
    """Return an index of version 2: how many names begin with up to each byte, names, checksums, places."""
    names = sorted(added)
    firsts = [0] * 256
    for name in names:
        firsts[int(name[:2], 16)] += 1
    counts = [sum(firsts[: byte + 1]) for byte in range(256)]
    places = struct.pack(f">{len(names)}I", *(added[name][0] for name in names))
    sums = struct.pack(f">{len(names)}I", *(added[name][1] for name in names))
    index = FIRST_OF_INDEX + struct.pack(">256I", *counts) + bytes.fromhex("".join(names)) + sums + places + checksum
    return index + sha256(index).digest()


def _places(index: Path) -> dict[str, Place]:
    """Return where the objects of a pack stand. Raises ValueError for a damaged index."""
    content, pack = index.read_bytes(), index.with_suffix(".pack")
    if sha256(content[:-32]).digest() != content[-32:]:
        raise ValueError(f"{index} is damaged")
    (count,) = struct.unpack_from(">I", content, 8 + 255 * 4)
    names = content[1032 : 1032 + 32 * count]
    starts = struct.unpack_from(f">{count}I", content, 1032 + 36 * count)
    ends = dict(zip(sorted(starts), (*sorted(starts)[1:], pack.stat().st_size - 32), strict=True))
    return {names[32 * n : 32 * n + 32].hex(): (pack, start, ends[start]) for n, start in enumerate(starts)}


def _index_of(pack: Path) -> str:
    return f"{pack.name.removesuffix('.pack')}.idx"


def _part(pack: Path, start: int, end: int) -> bytes:
    with open(pack, "rb", buffering=0) as file:
        return os.pread(file.fileno(), end - start, start)


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _share(source: int, target: int) -> bool:
    """Make an empty file share the blocks of another one; return False where the file system cannot."""
    try:
        fcntl.ioctl(target, CLONE, source)
    except OSError:
        return False
    return True


def _extents(path: Path) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a file: where each lies on the disk, its bytes, and whether other files share them."""
    with open(path, "rb") as file:
        status, start = os.fstat(file.fileno()), 0
        while start < status.st_size:
            request = struct.pack("=QQIIII", start, status.st_size - start, 1, 0, 1, 0).ljust(EXTENT.size)
            try:
                count, begin, place, length, flags = EXTENT.unpack(fcntl.ioctl(file, EXTENTS, request))
            except OSError:  # this file system cannot say
                count, begin, place, length, flags = 1, start, -status.st_ino, status.st_size - start, 0
            if not count:
                return
            yield place, length, bool(flags & SHARED)
            start = begin + length


def _copy(source: int, target: int) -> None:
    """Copy an open file into an empty one, from its start, or share its blocks. Raises OSError."""
    if _share(source, target):
        return
    place = 0
    while piece := os.pread(source, PIECE, place):
        _write(target, piece)
        place += len(piece)
