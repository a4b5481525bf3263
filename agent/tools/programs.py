"""Programs that we start outside the sandbox: found once, by absolute path, where no command can have put them.

An agent may write `bwrap` into a folder on PATH, such as `<workspace>/.venv/bin`; what starts it by its name would run
that file unconfined.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache

from agent.vocabulary.errors import CannotStart


def find_program(name: str, writable: Iterable[str] = ()) -> str | None:
    """Return the absolute path of a program on PATH that lies outside all `writable` places, links included.

    An absolute path is looked at in the same way. The first answer stands as long as PATH is the same. None: there is
    none.
    """
    places = tuple(sorted({os.path.realpath(os.path.expanduser(place)) for place in writable}))
    return _find(name, os.environ.get("PATH", os.defpath), places)


def required_program(name: str, writable: Iterable[str] = ()) -> str:
    """Return the path of a program as `find_program` does. Raises CannotStart if there is none."""
    found = find_program(name, writable)
    if found is None:
        raise CannotStart(f"there is no program {name!r} on PATH, outside the places that the agent may write")
    return found


@lru_cache(maxsize=256)
def _find(name: str, path: str, writable: tuple[str, ...]) -> str | None:
    folders = [os.path.dirname(name)] if "/" in name else path.split(os.pathsep)
    for folder in filter(os.path.isabs, folders):
        file = os.path.join(os.path.realpath(folder), os.path.basename(name))
        is_program = os.path.isfile(file) and os.access(file, os.X_OK)
        if is_program and not any(_is_below(hop, writable) for hop in _hops(file)):
            return file
    return None


def _hops(file: str) -> Iterator[str]:
    """Yield a file that exists and, if it is a link, each file that it leads to, with real folders."""
    yield file
    while os.path.islink(file):
        target = os.path.join(os.path.dirname(file), os.readlink(file))
        file = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
        yield file


def _is_below(file: str, places: tuple[str, ...]) -> bool:
    return any(file == place or file.startswith(place.rstrip("/") + "/") for place in places)
