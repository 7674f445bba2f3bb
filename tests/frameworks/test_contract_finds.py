"""The contract finds what a kind of agent does wrong: one that finds nothing proves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_approvals import agent
from hitl_approvals.registry import registry
from hitl_approvals.testing import AgentContract
from hitl_approvals.testing.agent_contract_world import VARIABLE
from tests.frameworks.test_contract import ask

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]


class Broken(AgentContract):
    """Not collected: its tests are called one by one, and have to fail."""

    kind = "tests.frameworks.faulty"
    fault = "ScriptedAgent"

    def make_agent(self, name: str, tools: Any, script: Any) -> None:
        def model(messages: list[Any]) -> dict[str, Any]:
            return ask(script, messages)

        model.fault = self.fault  # type: ignore[attr-defined]
        agent(name, kind=self.kind, tools=tools)(model)


class AskingElsewhere(Broken):
    """Another process finds a fault by its class only."""

    fault = "AskingAgain"


class ForgettingElsewhere(Broken):
    fault = "KeepingInMemory"


FOUND_BY = [
    ("NoGate", "test_an_approved_call_runs_once_and_the_model_is_told"),
    ("NoGate", "test_a_call_that_nobody_decides_in_time_has_no_effect"),
    ("Repeating", "test_an_approved_call_runs_once_and_the_model_is_told"),
    ("Repeating", "test_a_rejected_call_has_no_effect_and_the_model_reads_why"),
    ("Repeating", "test_calls_that_need_nobody_run_once_beside_one_that_waits"),
    ("TooEarly", "test_an_approved_call_runs_once_and_the_model_is_told"),
    ("TooEarly", "test_a_rejected_call_has_no_effect_and_the_model_reads_why"),
    ("IgnoringEdits", "test_an_edited_call_runs_as_edited_and_the_model_is_told_so"),
    ("IgnoringEdits", "test_each_of_three_calls_gets_its_own_decision"),
    ("RunningRefused", "test_a_rejected_call_has_no_effect_and_the_model_reads_why"),
    ("RunningRefused", "test_a_call_that_nobody_decides_in_time_has_no_effect"),
    ("OneAnswer", "test_each_of_three_calls_gets_its_own_decision"),
    ("SwappedAnswers", "test_each_of_three_calls_gets_its_own_decision"),
    ("Rounding", "test_what_runs_is_what_was_shown_to_the_last_digit_and_letter"),
    ("OwnWords", "test_a_rejected_call_has_no_effect_and_the_model_reads_why"),
    ("OneOrigin", "test_an_id_that_comes_again_in_a_later_reply_is_another_call"),
]


def prepared(kind: type[Broken], folder: Path, patch: pytest.MonkeyPatch) -> Broken:
    contract = kind()
    contract.set_up(folder)
    patch.setenv(VARIABLE, str(folder / "world"))
    patch.setattr(registry, "agents", dict(registry.agents))
    return contract


@pytest.mark.parametrize(("fault", "test"), FOUND_BY)
def test_what_a_kind_does_wrong_is_found(
    fault: str, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = prepared(Broken, tmp_path, monkeypatch)
    monkeypatch.setattr(contract, "fault", fault)

    with pytest.raises(AssertionError):
        getattr(contract, test)()


@pytest.mark.parametrize("remedy", ["retry", "restart"])
def test_a_kind_that_reads_any_state_is_found(
    remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = prepared(Broken, tmp_path, monkeypatch)
    monkeypatch.setattr(contract, "fault", "ReadingAnything")

    with pytest.raises(AssertionError):
        contract.test_a_state_of_a_newer_framework_is_a_visible_stop(remedy)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (AskingElsewhere, "test_killed_between_two_pauses_nothing_is_done_twice"),
        (
            ForgettingElsewhere,
            "test_another_process_goes_on_with_what_this_one_paused",
        ),
    ],
)
def test_what_only_another_process_shows_is_found(
    kind: type[Broken], test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = prepared(kind, tmp_path, monkeypatch)

    try:
        with pytest.raises(AssertionError):
            getattr(contract, test)()
    finally:
        contract.teardown_class()


@pytest.mark.parametrize("test", sorted({test for _fault, test in FOUND_BY}))
def test_a_kind_without_a_fault_passes_what_finds_the_others(
    test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    getattr(prepared(Broken, tmp_path, monkeypatch), test)()
