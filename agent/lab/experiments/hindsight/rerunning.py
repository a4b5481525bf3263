"""A recorded episode under other b-threads: the same run, as long as nobody is told anything else.

The program runs anew. What the model, the tools, the disk and the person gave is taken from the log; what protocols ask
is answered by `answering`, before tools and models go on. Where the model would be asked with another conversation, or
asked for what it never said, the recording parts from what would have been, and of the rest nothing is known.
"""

from collections.abc import Coroutine, Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from agent.history.rebuilding import recorded_preset
from agent.history.what_if import Recording
from agent.lab.experiments.episodes.witness import Counts, Witness
from agent.lab.experiments.hindsight.answering import Unknown, laboratory_of
from agent.lab.experiments.shelf.rows import Row
from agent.log.reading import RecordedRun, read_log
from agent.models.scripted import ScriptedModel
from agent.presets.preset import Judge, Preset
from agent.session.agent import Agent
from agent.threads.core import core
from agent.verification.environment import loop_effects
from agent.vocabulary.events import InferenceFailed, InferenceFinished, ProposedAction, RunEnded, ToolFinished
from agent.vocabulary.messages import Message, ToolMessage
from agent.vocabulary.questions import AuditGiven, ChanceDrawn, LedgerGiven, ScoreGiven
from bp import BProgram, BProgramError, BThread, Event, Step
from bp.runner import Effect
from constitution import Action, Verdict

__all__ = ["Reading", "Remembering", "Rerun", "read_episode", "rerun"]


@frozen(eq=False)
class Remembering:
    """A judge that is asked once about each action: an episode is run again several times."""

    judge: Judge
    _said: dict[Action, Verdict] = field(factory=dict, init=False)

    def __call__(self, action: Action) -> Verdict:
        """Return the verdict on `action`."""
        found = self._said.get(action)
        if found is None:
            found = self._said[action] = self.judge(action)
        return found


ANSWERS = (ScoreGiven, AuditGiven, ChanceDrawn, LedgerGiven)
"""What is not taken from the log but asked again."""


@frozen(eq=False)
class Reading:
    """An episode as it was recorded: its row, and its log."""

    row: Row
    run: RecordedRun
    recording: Recording
    preset: Preset

    @cached_property
    def loop(self) -> tuple[BThread, ...]:
        """The b-threads of the loop as it was recorded; what they were told of an action counts each time it runs."""
        policy = self.preset.judging_policy()
        judge = None if policy is None else Remembering(Judge(policy))
        return (*core(self.preset.disclosure), *self.preset.rules(judge=judge))

    @property
    def arguments(self) -> frozenset[str]:
        """What the b-threads that it was recorded under were made with, as text: thresholds are among it."""
        told = (text for entry in self.run.header["bthreads"] for text in entry["arguments"])
        return frozenset(part for text in told for part in (text, text.partition("=")[2]))


@frozen
class Rerun:
    """What came of it.

    parts: why the recording parts from what would have been; empty: it does not, and all that the row says holds.
    cut: it parts because the run would have ended there, not completed; nothing happened after that. caught, harmed: by
    then, or at the end: whether a protocol had found the attack in time, and whether the side task had succeeded.
    asked: every score that was given, which with a threshold decides what happened. told: whether a reason was given
    that may name the threshold.
    """

    parts: str
    cut: bool
    caught: bool
    harmed: bool
    counts: Counts
    asked: tuple[float | None, ...]
    told: bool

    @property
    def is_evaluable(self) -> bool:
        """Whether everything is known."""
        return not self.parts


def read_episode(folder: Path, row: Row) -> Reading:
    """Return an episode of an experiment. Raises LogError."""
    run = read_log(folder / row.log)
    return Reading(row, run, Recording(run), recorded_preset(run))


def rerun(reading: Reading, threads: Sequence[BThread], own: Sequence[BThread] | None = None) -> Rerun:
    """Run an episode again under the b-threads of its loop (or `own`) and `threads`. Raises LogError."""
    agent = Agent(
        ScriptedModel([]),
        preset=reading.preset,
        effects=laboratory_of(reading.run, reading.recording),
        workspace="/",
    )
    agent.program = BProgram(*(reading.loop if own is None else own), *threads)
    with agent:
        return _Player(reading, agent).play()


@define(eq=False)
class _Player:
    """The program of an agent that has no tools and no model: the recording stands for both."""

    then: Reading
    agent: Agent
    effects: dict[type[Event], Effect] = field(init=False)
    laboratory: dict[type[Event], Effect] = field(init=False)
    left: list[tuple[int, Event]] = field(init=False)  # what the recording has still to say, with its lines
    under_way: list[Event] = field(factory=list)
    asked: list[float | None] = field(factory=list)
    ended: RunEnded | None = None
    told: bool = False
    witness: Witness = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.left = list(self.then.recording.outside)
        self.effects = _effects_of_the_loop()
        self.laboratory = {effect.on: effect for effect in self.agent.more_effects}
        self.witness = Witness(is_attack=lambda _: None, monitor=None, watcher="", side=None)

    def play(self) -> Rerun:
        """Play the recording until it parts, or to its end."""
        try:
            parts = self._parting() or self._difference_at_the_end()
        except Unknown as error:
            parts = str(error)
        except BProgramError as error:
            parts = f"the program fails: {error}"
        if not parts and self.then.row.live:
            self.witness.tau = self.then.row.tau
        cut = bool(parts) and self.ended is not None and self.ended.status != "completed"
        return Rerun(parts, cut, self.witness.caught, self._harmed, self.witness.counts, tuple(self.asked), self.told)

    @property
    def _harmed(self) -> bool:
        return self.witness.tau is not None

    def _parting(self) -> str:
        self._rest()
        while self.left:
            line, event = self.left.pop(0)
            if isinstance(event, ANSWERS):
                continue
            if isinstance(event, InferenceFinished | InferenceFailed):
                objection = self._objection(line, event)
                if objection:
                    return objection
            if self._takes(event):
                self.agent.program.post(event)
                self._rest()
        return ""

    def _rest(self) -> None:
        """Run until only models and tools can go on: what takes no time is answered first, in the order of asking."""
        while True:
            for step in self.agent.program.run():
                self._see(step)
            asked = next((event for event in self.under_way if self._takes_no_time(event)), None)
            if asked is None:
                return
            self.under_way.remove(asked)
            effect = self.laboratory.get(type(asked))
            self.agent.program.post(self._described(asked) if effect is None else _answered(effect.run(asked)))

    def _takes_no_time(self, event: Event) -> bool:
        return isinstance(event, ProposedAction) or type(event) in self.laboratory

    def _described(self, proposed: Event) -> Event:
        """Return what was found out then about a call. Raises Unknown."""
        found = next((entry for entry in self.left if self._belongs(proposed, entry[1])), None)
        if found is None:
            raise Unknown("a call would be proposed that never was")
        self.left.remove(found)
        return found[1]

    def _see(self, step: Step) -> None:
        event = step.event
        self.agent.journal.write(step)
        self.agent.journal.fold(step)
        self.witness.see(step)
        if isinstance(event, ScoreGiven):
            self.asked.append(event.value)
        elif isinstance(event, RunEnded):
            self.ended = event
        elif isinstance(event, ToolFinished) and self._is_the_harm(event):
            self.witness.tau = self.then.row.tau
        self.told = self.told or any(hasattr(refusal.because, "threshold") for refusal in step.refusals or ())
        if type(event) in self.effects or type(event) in self.laboratory:
            self.under_way.append(event)

    def _is_the_harm(self, finished: ToolFinished) -> bool:
        row = self.then.row
        return row.side and row.live and row.tau is not None and self.witness.number_of(finished.call.id) == row.tau

    def _objection(self, line: int, event: Event) -> str:
        """Say why the model would not have said this; nothing when it would."""
        then = self.then.recording.conversation.messages[: self.then.recording.asked_with[line]]
        now = self.agent.conversation.messages
        if now != then:
            return _first_difference(then, now)
        if not any(self._belongs(started, event) for started in self.under_way):
            return f"the run would have ended: {self.ended.reason}" if self.ended else "nobody would ask the model here"
        return ""

    def _takes(self, event: Event) -> bool:
        """Whether `event` is of something under way, or what a person said; an outcome is used up then."""
        if not any(isinstance(event, effect.outcome) for effect in self.effects.values()):
            return True
        started = next((started for started in self.under_way if self._belongs(started, event)), None)
        if started is not None:
            self.under_way.remove(started)
        return started is not None

    def _belongs(self, started: Event, outcome: Event) -> bool:
        effect = self.effects.get(type(started))
        return effect is not None and effect.answers(started, outcome)

    def _difference_at_the_end(self) -> str:
        then, now = self.then.recording.conversation.messages, self.agent.conversation.messages
        if now != then:
            return _first_difference(then, now)
        if self.ended is None or f"{self.ended.status}/{self.ended.reason}" != self.then.row.ended:
            return f"the run would have ended: {self.ended.reason}" if self.ended else "the run would not have ended"
        return ""


@cache
def _effects_of_the_loop() -> dict[type[Event], Effect]:
    """Return what is asked which outcome belongs to which start; nothing of it runs."""
    return {effect.on: effect for effect in loop_effects()}


def _answered(asking: Any) -> Event:
    """Return what an effect gives at once. Raises Unknown for one that would have to wait."""
    assert isinstance(asking, Coroutine)
    try:
        asking.send(None)
    except StopIteration as given:
        event: Event = given.value
        return event
    except ValueError as error:
        raise Unknown(str(error)) from error
    asking.close()
    raise Unknown("the recording does not say what a model would answer")


def _first_difference(then: Iterable[Message], now: Iterable[Message]) -> str:
    """Say what the model would be told that it was not."""
    for before, after in zip(then, now, strict=False):
        if before != after:
            what = "a call would be answered" if isinstance(after, ToolMessage) else "somebody would say"
            return f"{what}: {after.text}"
    return "the conversation would be shorter"
