"""The model of the agent contract for processes without Django."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def play(given: Any, number: int, told: list[Any]) -> dict[str, Any]:
    """Return a reply of the script, and note in the contract's file that it was asked for.

    Like `agent_contract_world.Script.play`, whose module needs the apps.
    """
    line = {"what": "asked", "pid": os.getpid(), "number": number, "told": told}
    with Path(given["file"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    script = given["script"]
    if number < len(script):
        return dict(script[number])
    return {"text": "done", "tool_calls": []}
