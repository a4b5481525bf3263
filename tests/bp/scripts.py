"""B-threads as data: scripts that the engine and the reference both can perform, and random ones.

A script's lines are statements over simple events and event sets (tuples). `perform` makes a b-thread of a script;
its caller translates what it says and what it hears.
"""

from collections.abc import Callable, Generator, Iterable
from random import Random
from typing import Any, Literal, NamedTuple


class Happening(NamedTuple):
    """An event: its kind, and what it carries (plain events carry nothing)."""

    kind: str
    value: int | None = None
    tag: int | None = None


class Events(NamedTuple):
    """An event set: a word and what it is about; see `holds`."""

    word: Literal["event", "kind", "where", "asked", "union", "both", "not", "all", "none"]
    about: Any = None


class Instead(NamedTuple):
    """An `otherwise`: the event it gives for one refusal, for more, and when one is "too late"; None: it raises."""

    one: Happening | None
    more: Happening | None
    late: Happening | None

    def answer(self, refusals: Iterable[tuple[str, str]]) -> Happening | None:
        reasons = [because for _, because in refusals]
        return self.late if "too late" in reasons else self.one if len(reasons) == 1 else self.more


class Say(NamedTuple):
    """A synchronization statement, and where the script goes on: by default at its next line."""

    request: tuple[Happening, ...] = ()
    any_of: bool = False
    wait_for: Events | None = None
    block: Events | None = None
    interrupt: Events | None = None
    refuse: Events | None = None
    because: str | None = None
    otherwise: Instead | None = None
    hot: bool = False
    then: int | None = None
    on_otherwise: int | None = None


class Script(NamedTuple):
    """A b-thread as data: its lines are statements, tuples of scripts to start, "raise", or any wrong thing."""

    name: str
    lines: tuple[Any, ...]
    priority: int | None = None
    when_closed: Literal["obey", "raise", "yield"] = "obey"


Diary = list[tuple[str, Any]]


def perform(
    script: Script, diary: Diary, speak: Callable[[Any], Any], understand: Callable[[Any], Happening | None]
) -> Generator[Any, Any, None]:
    """Run a script as a b-thread, writing into the diary whatever it hears."""
    line = 0
    try:
        while line < len(script.lines):
            said = script.lines[line]
            line += 1
            if said == "raise":
                raise ValueError(script.name)
            heard = understand((yield speak(said)))
            diary.append((script.name, heard))
            if isinstance(said, Say):
                goes_to = said.then if heard in said.request or not said.otherwise else said.on_otherwise
                line = line if goes_to is None else goes_to
    except GeneratorExit:
        diary.append((script.name, "closed"))
        if script.when_closed == "raise":
            raise ValueError(script.name) from None
        if script.when_closed == "yield":
            yield speak(Say())
        raise


# Random programs: few events, so that b-threads get into each other's way.

HAPPENINGS = (
    Happening("ping", 0, 0),
    Happening("ping", 0, 1),
    Happening("ping", 1, 0),
    Happening("ping", 2, 1),
    Happening("pong", 0),
    Happening("pong", 1),
    Happening("hot"),
    Happening("cold"),
    Happening("mild"),
    Happening("warm", 0),
    Happening("warm", 1),
)
SIMPLE_WORDS: tuple[Any, ...] = ("event", "event", "kind", "where", "where", "asked")
WORDS = (*SIMPLE_WORDS, "union", "both", "not", "all", "none")


class Author:
    """Writes random scripts; `faulty` ones have predicates and alternatives that raise."""

    def __init__(self, random: Random, faulty: bool = False) -> None:
        self.random = random
        self.faulty = faulty
        self.scripts = 0
        self.happenings = tuple(random.choice(HAPPENINGS) for _ in range(random.randrange(2, 7)))

    def often(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def happening(self) -> Happening:
        return self.random.choice(self.happenings)

    def events(self, depth: int = 0) -> Events:
        word = self.random.choice(WORDS if depth < 2 else SIMPLE_WORDS)
        match word:
            case "event":
                return Events("event", self.happening())
            case "kind":
                return Events("kind", self.happening().kind)
            case "where":
                return Events("where", self.random.choice(self.conditions()))
            case "asked":
                return Events("asked", (self.random.choice((("ping",), ("pong",), ("ping", "pong"))), self.answers()))
            case "union" | "both":
                return Events(word, tuple(self.events(depth + 1) for _ in range(2)))
            case "not":
                return Events("not", self.events(depth + 1))
            case "all" | "none":
                return Events(word)
        raise AssertionError(word)

    def conditions(self) -> tuple[Any, ...]:
        value, tag = self.random.randrange(3), self.random.randrange(2)
        return (
            (("ping",), (("value", value),)),
            (("ping",), (("tag", tag),)),
            (("ping",), (("value", value), ("tag", tag))),
            (("pong",), (("value", value),)),
            (("ping", "pong"), (("value", value),)),
            (("warm",), (("value", value),)),
        )

    def answers(self) -> tuple[bool | None, ...]:
        possible = (True, False, None) if self.faulty else (True, False)
        return tuple(self.random.choice(possible) for _ in range(3))

    def instead(self) -> Instead:
        possible = (*self.happenings, None) if self.faulty else self.happenings
        return Instead(*(self.random.choice(possible) for _ in range(3)))

    def maybe_events(self, percent: int) -> Events | None:
        return self.events() if self.often(percent) else None

    def say(self, lines: int) -> Say:
        request = tuple(self.happening() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))))
        refuse = self.maybe_events(30)
        return Say(
            request,
            self.often(30),
            self.maybe_events(60 if not request else 20),
            self.maybe_events(20),
            self.maybe_events(10),
            refuse,
            self.random.choice(("too late", "not allowed")) if refuse else None,
            self.instead() if request and self.often(60) else None,
            self.often(10),
            self.random.randrange(lines) if self.often(70 if not request else 20) else None,
            self.random.randrange(lines) if self.often(20) else None,
        )

    def line(self, lines: int, depth: int) -> Any:
        chance = self.random.randrange(200)
        if chance == 0:
            return "raise"
        if chance == 1:
            return self.random.choice((None, "nonsense", 7))
        if chance < 20 and depth < 2:
            return tuple(self.script(depth + 1) for _ in range(self.random.randrange(3)))
        return self.say(lines)

    def script(self, depth: int = 0) -> Script:
        self.scripts += 1
        name = f"thread {self.scripts}"
        lines = self.random.randrange(5)
        return Script(
            name,
            tuple(self.line(lines, depth) for _ in range(lines)),
            self.random.choice((None, None, None, -1, 0, 1, 5)),
            "obey" if self.often(95) else self.random.choice(("raise", "yield")),
        )

    def program(self) -> tuple[Script, ...]:
        return tuple(self.script() for _ in range(self.random.randrange(1, 8)))

    def keeper(self) -> Script:
        """Return a b-thread that never ends, and at each event holds back others: posts wait, and are turned away."""
        held = [Events("event", self.happening()) for _ in range(3)]
        blocking = [Say(wait_for=Events("all"), block=events, then=line) for line, events in enumerate(held, start=1)]
        refusing = Say(wait_for=Events("all"), refuse=self.events(), because="too late", then=0)
        return Script("keeper", (*blocking, refusing))

    def moves(self) -> tuple[Any, ...]:
        """Return what is done with a program: steps, runs until it rests, posts, and at last its end.

        In every second program posts wait beside each other: more are posted than taken.
        """
        steps = self.random.choice((("step", "run", "run"), ("step",)))
        return tuple(
            self.random.choice((*steps, (self.happening(), self.random.choice(("keep", "drop", "reject")))))
            for _ in range(self.random.randrange(1, 36 // len(steps)))
        )
