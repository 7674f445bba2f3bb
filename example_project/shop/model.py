"""Stands for a language model: no network, no key, the same reply to the same words.

Put a call to your own model in place of `ask_model`; only the shape of the reply counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

_ORDER = re.compile(r"\b[A-Z]-\d{4}\b")
_AMOUNT = re.compile(r"\b\d+(?:\.\d{1,2})?(?= ?(?:EUR|€))")
_WRITE = re.compile(r"\b(e-?mail|write|tell)\b", re.IGNORECASE)

_DONE = {
    "issue_refund": "The refund was made.",
    "email_customer": "The customer was written to.",
}
_NOT_DONE = {
    "issue_refund": "The refund was not made.",
    "email_customer": "The customer was not written to.",
}


def ask_model(messages: Sequence[Message]) -> Message:
    """Return the next message of the conversation, perhaps with calls of tools."""
    prompt = str(messages[0]["content"])
    results = [message for message in messages if message["role"] == "tool"]
    order = _ORDER.search(prompt)
    if order is None:
        return _reply("Which order is it about? Its number looks like A-1002.")
    if not results:
        return _reply("Let me look.", [_call("lookup_order", order=order[0])])
    if len(results) == 1 and results[0]["status"] == "ok":
        return _act(prompt, json.loads(results[0]["content"]))
    if len(results) == 1:
        return _reply(results[0]["content"])
    return _reply(" ".join(_told(result) for result in results[1:]))


def tool_result(name: str, text: str) -> Message:
    """Return a tool's message for `ask_model` where a framework keeps its text only.

    Results of the look-up are JSON; the other texts say themselves what happened.
    """
    status = "ok" if text.startswith("{") else "unknown"
    return {"role": "tool", "name": name, "content": text, "status": status}


def _act(prompt: str, found: dict[str, str]) -> Message:
    asked = _AMOUNT.search(prompt)
    amount = asked[0] if asked else found["refundable"]
    order, money = found["order"], f"{amount} {found['currency']}"
    calls = [_call("issue_refund", order=order, amount=amount, reason=prompt[:200])]
    if _WRITE.search(prompt):
        calls.append(
            _call(
                "email_customer",
                order=order,
                subject=f"Your order {order}",
                body=f"We are sorry. {money} are on their way back to you.",
            )
        )
    return _reply(
        f"The customer of {order} complains and has paid. I would give {money} back.",
        calls,
    )


def _told(result: Message) -> str:
    """Say what became of a call: a reviewer may have refused or changed it."""
    if result["status"] == "unknown":
        return str(result["content"])
    words = _DONE if result["status"] == "ok" else _NOT_DONE
    return f"{words[result['name']]} {result['content']}"


def _call(name: str, **args: str) -> dict[str, Any]:
    return {"id": f"call_{name}", "name": name, "args": args}


def _reply(content: str, calls: Sequence[dict[str, Any]] = ()) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}
