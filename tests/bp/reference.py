"""The meaning of a behavioral program, said as plainly as possible: a reference to compare the engine with.

B-threads are data: scripts that the engine and the reference both can perform, and random ones. A script's lines are
statements over simple events and event sets (tuples). `perform` makes a b-thread of a script; its caller translates
what it says and what it hears.

The reference answers every question by asking every b-thread again. Answers have three values, as errors do: a
predicate that raises makes its set's answer unknown (None), and a step that needs an unknown answer fails.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
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
    script: Script,
    speak: Callable[[Any], Any],
    understand: Callable[[Any], Happening | None],
    diary: Diary | None = None,
) -> Generator[Any, Any, None]:
    """Run a script as a b-thread that keeps its line and nothing else; into the diary it writes whatever it hears."""
    line = 0
    try:
        while line < len(script.lines):
            said = script.lines[line]
            line += 1
            if said == "raise":
                raise ValueError(script.name)
            heard = understand((yield speak(said)))
            if diary is not None:
                diary.append((script.name, heard))
            if isinstance(said, Say):
                goes_to = said.then if heard in said.request or not said.otherwise else said.on_otherwise
                line = line if goes_to is None else goes_to
    except GeneratorExit:
        if diary is not None:
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


# The reference.

Truth = bool | None


def some(answers: Iterable[Truth]) -> Truth:
    """Tell whether any answer is yes; unknown when that hangs on an unknown one."""
    known = list(answers)
    return True if True in known else None if None in known else False


def opposite(answer: Truth) -> Truth:
    return None if answer is None else not answer


def holds(events: Events | None, event: Happening) -> Truth:
    """Tell whether a set has an event."""
    if events is None or events.word == "none":
        return False
    about = events.about
    match events.word:
        case "event":
            return bool(about == event)
        case "kind":
            return bool(about == event.kind)
        case "where":
            kinds, fields = about
            return event.kind in kinds and all(getattr(event, name) == value for name, value in fields)
        case "asked":
            kinds, answers = about
            return event.kind in kinds and answers[event.value]
        case "union":
            return some(holds(part, event) for part in about)
        case "both":
            return opposite(some(opposite(holds(part, event)) for part in about))
        case "not":
            return opposite(holds(about, event))
    return True


class Unknown(Exception):
    """The step needs an answer that is an error: nothing is selected, the program has failed."""


class Failed(Exception):
    """B-threads failed in a round."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class Endless(Exception):
    """More events and starts in a super-step than allowed."""


class Living:
    """A b-thread that was started."""

    def __init__(self, script: Script, priority: int, age: int, body: Generator[Any, Any, None]) -> None:
        self.script = script
        self.priority = priority
        self.age = age
        self.body = body
        self.says = Say()


class Offer(NamedTuple):
    """A selectable event with its first requester, and the refusals it answers if it is an `otherwise`."""

    event: Happening
    by: Living
    refusals: tuple[tuple[str, str], ...] | None = None


class Happened(NamedTuple):
    """A step: its number, event, super-step and requester, the refusals answered, who resumed, who was closed."""

    number: int
    event: Happening
    super_step: int
    by: str | None
    refusals: tuple[tuple[str, str], ...] | None
    resumed: tuple[str, ...]
    interrupted: tuple[str, ...]


class Post:
    """An external event and what became of it."""

    def __init__(self, event: Happening, when_blocked: str) -> None:
        self.event = event
        self.when_blocked = when_blocked
        self.state = "queued"
        self.blockers: tuple[tuple[str, str | None], ...] = ()


class Reference:
    """A behavioral program, step by step."""

    def __init__(self, scripts: Iterable[Script], max_steps: int = 1000) -> None:
        self.diary: Diary = []
        self.max_steps = max_steps
        self.living: list[Living] = []
        self.starting = [(script, script.priority or 0) for script in scripts]
        self.begun = False
        self.queue: list[Post] = []
        self.happened: list[Happened] = []
        self.super_step = 0
        self.spent = 0
        self.age = 0

    # Who is in the way.

    def by_rank(self) -> list[Living]:
        return sorted(self.living, key=lambda thread: (-thread.priority, thread.age))

    def is_refused(self, event: Happening) -> Truth:
        return some(holds(thread.says.refuse, event) for thread in self.living)

    def is_free(self, event: Happening) -> Truth:
        blocked = some(holds(thread.says.block, event) for thread in self.living)
        return opposite(some([blocked, self.is_refused(event)]))

    def blockers(self, event: Happening) -> tuple[tuple[str, str | None], ...]:
        found: list[tuple[str, str | None]] = []
        for thread in self.by_rank():
            if holds(thread.says.refuse, event):
                found.append((thread.script.name, thread.says.because))
            elif holds(thread.says.block, event):
                found.append((thread.script.name, None))
        return tuple(found)

    # What is offered.

    def alternative(self, thread: Living) -> Offer | None:
        """Return what a b-thread asks for instead, while everything it requests is refused."""
        says = thread.says
        if says.otherwise is None:
            return None
        if not sure(opposite(some(opposite(self.is_refused(event)) for event in says.request))):
            return None
        refusals = tuple(
            (refuser.script.name, str(refuser.says.because))
            for refuser in self.by_rank()
            if sure(some(holds(refuser.says.refuse, event) for event in says.request))
        )
        event = says.otherwise.answer(refusals)
        if event is None:
            raise Unknown
        return Offer(event, thread, refusals)

    def offers(self, thread: Living) -> Iterator[Offer]:
        for event in thread.says.request:
            if sure(self.is_free(event)):
                yield Offer(event, thread)
                if not thread.says.any_of:
                    return
        alternative = self.alternative(thread)
        if alternative and sure(self.is_free(alternative.event)):
            yield alternative

    def candidates(self) -> Iterator[Offer]:
        """Yield the distinct selectable events, each with its first requester, best first."""
        seen: list[Happening] = []
        for thread in self.by_rank():
            for offer in self.offers(thread):
                if offer.event not in seen:
                    seen.append(offer.event)
                    yield offer

    # What happens.

    def step(self, choose: Callable[[Iterator[Offer]], Offer | None]) -> Happened | None:
        """Take a step; return None at rest."""
        if not self.begun:
            self.begun = True
            self.end_round(self.start_all())
        offer = choose(self.candidates())
        if offer:
            return self.happen(offer.event, offer.by.script.name, offer.refusals)
        post = self.next_post()
        return self.happen(post.event, post=post) if post else None

    def happen(
        self,
        event: Happening,
        by: str | None = None,
        refusals: tuple[tuple[str, str], ...] | None = None,
        post: Post | None = None,
    ) -> Happened:
        closing, resuming = self.concerned(event)
        if post:
            self.super_step, self.spent = self.super_step + 1, 0
            self.queue.remove(post)
            post.state = "taken"
        self.spend()
        resumed, interrupted = (tuple(thread.script.name for thread in threads) for threads in (resuming, closing))
        happened = Happened(len(self.happened) + 1, event, self.super_step, by, refusals, resumed, interrupted)
        self.happened.append(happened)
        failed = []
        for thread in self.by_rank():
            if thread in closing:
                failed += self.interrupt(thread)
            elif thread in resuming:
                failed += self.resume(thread, event)
        self.end_round(failed + self.start_all())
        return happened

    def end_round(self, failed: list[str]) -> None:
        if not self.living:
            self.discard()
        if failed:
            raise Failed(failed)

    def concerned(self, event: Happening) -> tuple[list[Living], list[Living]]:
        """Return whom an event interrupts, and who resumes."""
        closing = [thread for thread in self.by_rank() if sure(holds(thread.says.interrupt, event))]
        resuming = [thread for thread in self.by_rank() if thread not in closing and self.hears(thread, event)]
        return closing, resuming

    def hears(self, thread: Living, event: Happening) -> bool:
        if event in thread.says.request:
            return True
        waits = holds(thread.says.wait_for, event)
        if waits:
            return True
        alternative = self.alternative(thread)
        return (alternative is not None and alternative.event == event) or sure(waits)

    def interrupt(self, thread: Living) -> list[str]:
        self.living.remove(thread)
        return close(thread)

    def resume(self, thread: Living, event: Happening | None) -> list[str]:
        """Advance a b-thread to its next synchronization point; return its name if it fails."""
        try:
            said = thread.body.send(event)
            while isinstance(said, tuple) and not isinstance(said, Say):
                for _ in range(len(said) or 1):
                    self.spend()
                for script in said:
                    self.starting.append((script, thread.priority if script.priority is None else script.priority))
                said = thread.body.send(None)
        except StopIteration:
            self.living.remove(thread)
            return []
        except ValueError:
            self.living.remove(thread)
            return [thread.script.name]
        if not isinstance(said, Say):
            return [thread.script.name]
        thread.says = said
        return []

    def start_all(self) -> list[str]:
        failed = []
        while self.starting:
            script, priority = self.starting.pop(0)
            thread = Living(script, priority, self.age, perform(script, as_is, as_is, self.diary))
            self.age += 1
            self.living.append(thread)
            failed += self.resume(thread, None)
        return failed

    def spend(self) -> None:
        self.spent += 1
        if self.spent > self.max_steps:
            raise Endless

    def close(self) -> list[str]:
        """Close all b-threads, youngest first; return those that failed in it."""
        living, self.living = self.living, []
        self.discard()
        return [name for thread in sorted(living, key=lambda thread: -thread.age) for name in close(thread)]

    # What comes from outside.

    def next_post(self) -> Post | None:
        """Return the first post that can go; those before it follow their `when_blocked`."""
        for post in list(self.queue):
            if sure(self.is_free(post.event)):
                return post
            if post.when_blocked != "keep":
                self.queue.remove(post)
                post.state = "dropped" if post.when_blocked == "drop" else "rejected"
                post.blockers = self.blockers(post.event)
        return None

    def post(self, post: Post) -> None:
        at_rest = self.begun and next(self.candidates(), None) is None
        turn_is_now = at_rest and not any(sure(self.is_free(earlier.event)) for earlier in self.queue)
        self.queue.append(post)
        if self.begun and not self.living:
            self.discard()
        elif turn_is_now:
            self.next_post()

    def discard(self) -> None:
        for post in self.queue:
            post.state = "dropped"
        self.queue.clear()

    def status(self) -> str:
        if not self.begun:
            return "ready"
        if not self.living:
            return "finished"
        if next(self.candidates(), None) or any(self.is_free(post.event) for post in self.queue):
            return "ready"
        return "blocked" if any(thread.says.request for thread in self.living) else "idle"


def as_is(said: Any) -> Any:
    return said


def close(thread: Living) -> list[str]:
    try:
        thread.body.close()
    except (ValueError, RuntimeError):
        return [thread.script.name]
    return []


def sure(answer: Truth) -> bool:
    """Return the answer, or fail the step if it is unknown."""
    if answer is None:
        raise Unknown
    return answer
