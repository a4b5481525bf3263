"""Dining philosophers: each takes the fork on the right, then the one on the left, and puts them back."""

from bp import BThread, BThreadBody, Event, bthread, event, sync


def take(fork: int, philosopher: int) -> Event:
    return event(f"philosopher {philosopher} takes fork {fork}")


def put(fork: int, philosopher: int) -> Event:
    return event(f"philosopher {philosopher} puts fork {fork}")


@bthread
def philosopher(at: int, n: int) -> BThreadBody:
    right, left = at, (at + 1) % n
    while True:
        yield sync(request=take(right, at))
        yield sync(request=take(left, at))
        yield sync(request=put(left, at))
        yield sync(request=put(right, at))


@bthread
def fork(at: int, n: int, forgets: bool) -> BThreadBody:
    """A fork is with one philosopher at a time; `forgets` to clear the local that holds the last event."""
    neighbors = (at, (at - 1) % n)
    takes = tuple(take(at, neighbor) for neighbor in neighbors)
    puts = tuple(put(at, neighbor) for neighbor in neighbors)
    while True:
        taken = yield sync(wait_for=takes, block=puts)
        yield sync(wait_for=puts[takes.index(taken)], block=takes)
        if not forgets:
            taken = None


def philosophers(n: int, *, forgets: bool = False) -> list[BThread]:
    """Return n philosophers and their n forks."""
    return [philosopher(at, n).named(f"philosopher {at}") for at in range(n)] + [
        fork(at, n, forgets).named(f"fork {at}") for at in range(n)
    ]
