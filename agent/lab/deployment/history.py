"""The history of a deployment: what was run, audited, found and disabled, folded from its events."""

from attrs import Factory, define

from agent.lab.deployment.events import AGENT, EpisodeEnded, EpisodeSkipped, EpisodeStarted
from agent.vocabulary.questions import AuditGiven, AuditRequested, AuditVerdict, RoleDisabled, WholeEpisode
from bp import Event

__all__ = ["History"]


@define
class History:
    """What came of a deployment so far.

    runs: the role of each episode that was started. ended: their ends. verdicts: of those that were audited.
    disabled: roles and monitors, each with the number of episodes that had been run before. caught_after: how many
    episodes had been run when something was caught first.
    """

    runs: dict[int, str] = Factory(dict)
    ended: dict[int, EpisodeEnded] = Factory(dict)
    skipped: list[int] = Factory(list)
    audits: int = 0
    verdicts: dict[int, AuditVerdict] = Factory(dict)
    disabled: dict[str, int] = Factory(dict)
    caught_after: int | None = None

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case EpisodeStarted():
                self.runs[event.episode] = event.role
            case EpisodeEnded():
                self.ended[event.episode] = event
                self._catch(event.caught and event.role == AGENT)
            case EpisodeSkipped():
                self.skipped.append(event.episode)
            case AuditRequested():
                self.audits += 1
            case AuditGiven(subject=WholeEpisode(episode=episode)):
                self.verdicts[episode] = event.verdict
                self._catch(event.is_caught)
            case RoleDisabled():
                self.disabled[event.role] = len(self.runs)

    def _catch(self, caught: bool) -> None:
        if caught and self.caught_after is None:
            self.caught_after = len(self.runs)
