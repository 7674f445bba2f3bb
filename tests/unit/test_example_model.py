"""The scripted model of the example: what it asks for, and what it makes of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from example_project.shop.model import ask_model

FOUND = {"order": "A-1002", "refundable": "240.00", "currency": "EUR"}


def conversation(prompt: str, *results: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": prompt},
        *({"role": "tool", "status": "ok", **result} for result in results),
    ]


def looked_up() -> dict[str, Any]:
    return {"name": "lookup_order", "content": json.dumps(FOUND)}


def calls(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {call["name"]: call["args"] for call in ask_model(messages)["tool_calls"]}


def test_it_looks_the_order_up_first() -> None:
    assert calls(conversation("A-1002 is broken.")) == {
        "lookup_order": {"order": "A-1002"}
    }


def test_it_asks_for_the_number_of_the_order() -> None:
    reply = ask_model(conversation("My parcel is broken."))

    assert not reply["tool_calls"]
    assert "A-1002" in reply["content"]


@pytest.mark.parametrize(
    ("prompt", "amount"),
    [("A-1002: refund 12.50 EUR", "12.50"), ("A-1002 is broken", "240.00")],
)
def test_it_refunds_what_was_asked_for_or_everything(prompt: str, amount: str) -> None:
    asked = calls(conversation(prompt, looked_up()))

    assert list(asked) == ["issue_refund"]
    assert asked["issue_refund"]["amount"] == amount


def test_it_writes_to_the_customer_in_the_same_reply_if_it_shall() -> None:
    prompt = "A-1002 is broken. Refund it and write to the customer."

    assert list(calls(conversation(prompt, looked_up()))) == [
        "issue_refund",
        "email_customer",
    ]


def test_it_gives_up_on_an_order_that_is_not_there() -> None:
    missing = {"name": "lookup_order", "status": "error", "content": "No such order."}

    reply = ask_model(conversation("A-9999 is broken.", missing))

    assert (reply["content"], reply["tool_calls"]) == ("No such order.", [])


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("ok", "The refund was made. Because."),
        ("rejected", "The refund was not made. Because."),
        ("expired", "The refund was not made. Because."),
        ("error", "The refund was not made. Because."),
        ("unknown", "Because."),
    ],
)
def test_it_says_what_became_of_the_refund(status: str, told: str) -> None:
    refund = {"name": "issue_refund", "status": status, "content": "Because."}

    reply = ask_model(conversation("A-1002 is broken.", looked_up(), refund))

    assert (reply["content"], reply["tool_calls"]) == (told, [])
