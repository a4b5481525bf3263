"""The meaning of a behavioral program, said as plainly as possible: a reference to compare the engine with.

Every question is answered by asking every b-thread again. Answers have three values, as errors do: a predicate that
raises makes its set's answer unknown (None), and a step that needs an unknown answer fails.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from tests.bp.scripts import Diary, Events, Happening, Say, Script, perform

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
            thread = Living(script, priority, self.age, perform(script, self.diary, as_is, as_is))
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
