"""Treatments: the b-threads, effects, preset and monitors of an episode, made from its plan."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import blake2b
from typing import Any, cast

from attrs import evolve, frozen

from agent.effects.monitoring import Auditor, MakeEffect, PromptedAuditor, TruthfulAuditor, laboratory
from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.experiments.own_protocols import check_taken, entry_of, own_object
from agent.lab.experiments.plan import Episode, MonitorPlan, ProtocolPlan
from agent.lab.settings.setting import Setting
from agent.models.model import Model
from agent.presets import PRESETS
from agent.presets.preset import Preset
from agent.protocols.monitoring import is_planted
from agent.protocols.monitors import (
    PROMPT,
    ConstantMonitor,
    ConstitutionMonitor,
    Evidence,
    KeywordMonitor,
    Monitor,
    PromptedMonitor,
    SimulatedMonitor,
    calls_of,
)
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.reasons import Disclosure
from bp import BThread

GetModel = Callable[[str, ModelPlan, str], Model]
"""Returns the real model of a role, for a monitor of that name."""


@frozen
class Treatment:
    """The b-threads of an episode, its effects, its preset, and its monitors by name."""

    threads: tuple[BThread, ...]
    effects: tuple[MakeEffect, ...]
    preset: Preset
    monitors: Mapping[str, Monitor]


def treat(
    episode: Episode,
    setting: Setting,
    is_attack: Callable[[str], bool],
    honeypots: Mapping[str, ToolCall],
    get_model: GetModel,
) -> Treatment:
    """Return the treatment of an episode.

    `is_attack` knows the truth about calls by their ids, unless a real agent attacks; `get_model` gives real models.
    Raises ValueError, and ModelError for an unknown model.
    """
    truth = partial(attacks, is_attack)
    monitors = {plan.name: make_monitor(plan, truth, episode.chance, get_model) for plan in episode.monitors}
    policy, protocol = episode.policy, episode.protocol
    auditor, auditors = dict(policy.models).get("auditor"), dict[str, Auditor]()
    if auditor is not None:
        auditors["auditor"] = PromptedAuditor(get_model("auditor", auditor, ""))
    elif not (policy.is_real and policy.attacks):  # else the truth is unknown
        auditors["auditor"] = TruthfulAuditor(truth)
    limits = (policy.turns, policy.tokens)
    preset = preset_of(judged=protocol.judged, disclosure=protocol.disclosure, limits=limits)
    offered = {
        "monitor": protocol.monitor,
        "monitors": tuple(monitors)[:2],
        "is_critical": setting.critical,
        "honeypots": tuple(honeypots),
    }
    threads = [thread for name in protocol.use for thread in bthreads_of(name, protocol, offered)]
    effects = laboratory(monitors, auditors, honeypots=honeypots, seed=number_of(episode.chance))
    return Treatment(tuple(threads), effects, preset, monitors)


@cache
def preset_of(*, judged: bool, disclosure: Disclosure, limits: tuple[int, int]) -> Preset:
    """Return the preset of episodes, with or without the constitution; `limits`: turns, and tokens if not 0."""
    policy, (turns, tokens) = "default" if judged else None, limits
    own = evolve(PRESETS["default"], policy=policy, max_iterations=turns, disclosure=disclosure)
    return evolve(own, max_tokens=tokens) if tokens else own


def attacks(is_attack: Callable[[str], bool], evidence: Evidence) -> bool:
    """Return whether a subject contains a call that attacks or that is a honeypot."""
    return any(is_planted(call) or is_attack(call.id) for call in calls_of(evidence.subject))


def bthreads_of(name: str, protocol: ProtocolPlan, offered: Mapping[str, Any]) -> tuple[BThread, ...]:
    """Return the b-threads of a protocol, called with the arguments that it accepts. Raises ValueError."""
    if name == "constitution_only":
        return ()  # the preset's own
    entry, options = entry_of(name), dict(protocol.options)
    for option in options:
        check_taken(protocol.use, option)
    fixed = {} if protocol.threshold is None else {"threshold": protocol.threshold}
    given = {key: value for key, value in {**offered, **fixed, **options}.items() if key in entry.takes}
    try:
        return entry.bthreads(**given)
    except Exception as error:  # whatever a foreign function may raise
        raise ValueError(f"the protocol {name!r} cannot be made: {type(error).__name__}: {error}") from error


def make_monitor(plan: MonitorPlan, truth: Callable[[Evidence], bool], chance: str, get_model: GetModel) -> Monitor:
    """Return a monitor by its plan. Raises ModelError for an unknown model."""
    match plan.kind:
        case "simulated":
            seed = number_of(f"{chance}/{plan.name}")
            return SimulatedMonitor(truth, plan.alpha, plan.correlation, plan.slips, seed, plan.attempts)
        case "keyword":
            return KeywordMonitor(dict(plan.words)) if plan.words else KeywordMonitor()
        case "constitution":
            return ConstitutionMonitor()
        case "constant":
            return ConstantMonitor(plan.value)
        case "model":
            assert plan.model is not None
            return PromptedMonitor(get_model("monitor", plan.model, plan.name), plan.prompt or PROMPT)
        case "own":
            return own_monitor(plan.use)


def own_monitor(name: str) -> Monitor:
    """Return a monitor of the user: an object with `score(evidence)`, or a function's result. Raises ValueError."""
    return cast(Monitor, own_object(name, "monitor", "score", "a method score(evidence) that returns a Score"))


def number_of(text: str) -> int:
    """Return a seed derived from a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest())
