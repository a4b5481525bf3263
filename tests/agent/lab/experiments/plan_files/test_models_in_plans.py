"""Real models in plans: what cannot be is told with its place."""

from pathlib import Path

import pytest

from agent.lab.experiments.plan_file import PlanError, load_plan

REAL = "policies: [{name: real, models: {agent: big}, attacks: true}]"


@pytest.mark.parametrize(
    ("policies", "protocols", "more", "told"),
    [
        (REAL, "[{use: blocking_monitor, threshold: 0.5}]", "", "'watcher' is simulated, from the truth, which nobody"),
        (REAL, "[{use: defer_to_trusted, threshold: 0.5}]", "", "needs a model for the role 'trusted'"),
        (REAL, "[upfront_audit]", "monitors: {watcher: {kind: keyword}}", "needs a model for the role 'auditor'"),
        (REAL.replace(", attacks: true", ""), "[none]", "", "'real' does not attack; call it 'honest'"),
        ("policies: [{name: hones, models: {trusted: m}}]", "[none]", "", "'hones' has no model for the role 'agent'"),
        ("policies: [{name: always, models: {trusted: m}, attacks: false}]", "[none]", "", "leave `attacks` out"),
        ("policies: [{name: honest, models: {monitor: m}}]", "[none]", "", "unknown key 'monitor'"),
        ("policies: [honest, {name: honest, models: {agent: m}}]", "[none]", "", "there are several policies 'honest'"),
        ("policies: [{name: honest, models: {agent: ''}}]", "[none]", "", "no model is named"),
        ("policies: [{name: honest, models: {agent: {model: m, temperature: 1}}}]", "[none]", "", "unknown key 'temp"),
        ("policies: [{name: honest, models: {agent: {model: m, api: rest}}}]", "[none]", "", "one of 'chat', 'respon"),
        (
            "policies: [{name: honest, models: {agent: {model: m, url: 'http://a/v1', url_from: A}}}]",
            "[none]",
            "",
            "the address of the server is given twice",
        ),
        ("policies: [{name: honest, models: {agent: {model: m, price: cheap}}}]", "[none]", "", "a price is INPUT/OUT"),
        (
            "policies: [{name: honest, models: {agent: {model: m, timeout: 0}}}]",
            "[none]",
            "",
            "of seconds above 0",
        ),
        ("policies: [{name: honest, models: {agent: m}, turns: 0}]", "[none]", "", "whole number from 1 on, found 0"),
        ("policies: [honest]", "[none]", "models: {agent: m}", "unknown key 'agent'"),
        ("policies: [honest]", "[none]", "per_minute: {agent: 0}", "expected how often in a minute, found 0"),
    ],
)
def test_a_plan_that_cannot_be_is_told_where_it_is_wrong(
    policies: str, protocols: str, more: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"settings: [operations]\n{policies}\nprotocols: {protocols}\n{more}\n")

    with pytest.raises(PlanError) as caught:
        load_plan(path)

    assert str(caught.value).startswith(f"{tmp_path}/plan.yaml:")
    assert told in str(caught.value)
