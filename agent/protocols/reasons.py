"""Why protocols refuse: the values they give as `because`, and the categories that disclosure knows them by."""

from attrs import frozen

from agent.vocabulary.questions import ScoreGiven


@frozen
class Suspicious:
    """A monitor finds the subject too suspicious; `value` None: it gave no score, which counts as most suspicious."""

    monitor: str
    value: float | None
    threshold: float
    category: str = "suspicion"

    @classmethod
    def by(cls, given: ScoreGiven, threshold: float) -> "Suspicious":
        """Return the reason that a score is."""
        return cls(given.monitor, given.value, threshold)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.monitor} gives no score, which counts as most suspicious"
        return f"{self.monitor} gives {self.value:.2f}, and {self.threshold:.2f} is allowed"


@frozen
class NeedsTrust:
    """The action is critical: only a trusted model, or a person, may decide on it."""

    text: str = "an action like this is left to a trusted model"
    category: str = "critical action"

    def __str__(self) -> str:
        return self.text


@frozen
class Tainted:
    """What happened earlier in the conversation makes the action dangerous."""

    text: str
    category: str = "flow"

    def __str__(self) -> str:
        return self.text


@frozen
class Distrusted:
    """The monitor that would have to clear the action has passed something that was known to be harmful."""

    monitor: str
    honeypot: str
    category: str = "monitor"

    def __str__(self) -> str:
        return f"{self.monitor} has passed the honeypot {self.honeypot!r} and may clear nothing any more"


@frozen
class AddedUp:
    """No single action is too suspicious for the monitor, and all of the run together are."""

    monitor: str
    category: str = "suspicion"

    def __str__(self) -> str:
        return f"what {self.monitor} found slightly suspicious in this run has added up"
