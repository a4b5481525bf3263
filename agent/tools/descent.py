"""Go down a path one directory handle at a time, without following a single link.

A path that was resolved and allowed can change before it is opened: another process may put a link where a directory
was. Here each step starts at the handle of the directory above, so that what was checked is what is opened; a link
on the way is an error, `Changed`, after which the caller resolves and checks anew.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Changed", "open_directory", "open_parent"]

_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Changed(Exception):
    """A link stands where there was none when the path was resolved."""


@contextmanager
def open_parent(
    real: str, *, visit: Callable[[os.stat_result], None], create: Callable[[str], bool]
) -> Iterator[tuple[int, str]]:
    """Yield a handle on the directory of `real`, a path without links, and the last component ("." for the root).

    `visit` sees each directory on the way and raises to refuse it. A missing directory is made if `create` says so of
    its path. Raises Changed, or OSError naming the path.
    """
    components = [part for part in real.split("/") if part]
    name = components.pop() if components else "."
    with _descend(components, visit, create) as handle:
        yield handle, name


@contextmanager
def open_directory(real: str, *, visit: Callable[[os.stat_result], None]) -> Iterator[int]:
    """Yield a handle with which the directory `real` can be listed. Raises as `open_parent` does."""
    with _descend([part for part in real.split("/") if part], visit, lambda _: False) as handle:
        listing = _open_listing(handle, real)
        try:
            yield listing
        finally:
            os.close(listing)


def _open_listing(handle: int, path: str) -> int:
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    except OSError as error:
        raise type(error)(f"{path}: {error.strerror}") from error


@contextmanager
def _descend(
    components: list[str], visit: Callable[[os.stat_result], None], create: Callable[[str], bool]
) -> Iterator[int]:
    handle, path = os.open("/", _HANDLE), ""
    try:
        for component in components:
            path = f"{path}/{component}"
            below = _step(handle, component, path, create)
            os.close(handle)
            handle = below
            visit(os.fstat(handle))
        yield handle
    finally:
        os.close(handle)


def _step(handle: int, component: str, path: str, create: Callable[[str], bool]) -> int:
    try:
        return os.open(component, _HANDLE, dir_fd=handle)
    except FileNotFoundError as error:
        if not create(path):
            raise FileNotFoundError(f"no such directory: {path}") from error
    except OSError as error:
        if isinstance(error, NotADirectoryError) and not _is_file(component, handle):
            raise Changed(path) from error
        raise type(error)(f"{path}: {error.strerror}") from error
    with suppress(FileExistsError):
        os.mkdir(component, dir_fd=handle)
    return _step(handle, component, path, lambda _: False)


def _is_file(name: str, handle: int) -> bool:
    """Whether `name` in the directory `handle` is now something that will not be a directory: not a link, not gone."""
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except OSError:
        return False
    return not (stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
