"""A policy of the constitution, chosen by its name, as the function that `by_constitution` asks."""

from attrs import frozen

from constitution import POLICIES, Action, Policy, Verdict, judge, read_command_rule, read_rule

__all__ = ["Judge", "known_policy", "legible_commands", "legible_rules"]


@frozen
class Judge:
    """The constitution under one policy, as a pure function of an action."""

    policy: Policy

    def __call__(self, action: Action) -> Verdict:
        """Return the verdict on `action`."""
        return judge(action, self.policy)

    def __str__(self) -> str:
        return f"policy {self.policy.name}"


def known_policy(preset: object, attribute: object, name: str | None) -> None:
    """Raise ValueError for the name of no policy. A validator of attrs."""
    if name is not None and name not in POLICIES:
        raise ValueError(f"there is no policy {name!r}; policies: {', '.join(POLICIES)}, none")


def legible_rules(preset: object, attribute: object, rows: tuple[str, ...]) -> None:
    """Raise ValueError for a row that is no rule of a policy. A validator of attrs."""
    for row in rows:
        read_rule(row)


def legible_commands(preset: object, attribute: object, rows: tuple[str, ...]) -> None:
    """Raise ValueError for a row that is no rule about a command. A validator of attrs."""
    for row in rows:
        read_command_rule(row)
