"""One lane: a database of its own, on which one case after the other is played."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.crash.cases import Case
from tests.crash.phases import Script
from tests.crash.site import outside
from tests.crash.verdict import Verdict


@dataclass
class Lane:
    """Where the processes of one lane meet: a folder, and a queue of its name."""

    folder: Path
    patience: float
    """How long a case may take after the crash, in seconds."""
    numbers: Any = field(default_factory=count)

    def enter(self) -> None:
        """Make this process and all that it forks belong to the lane."""
        self.folder.mkdir(parents=True, exist_ok=True)
        outside.folder = self.folder

    def play(self, case: Case) -> Verdict:
        """Play a case and judge what it left behind."""
        settings.HITL_APPROVALS |= {
            "DISPATCHER": case.transport,
            "CELERY_QUEUE": self.folder.name,
        }
        folder = self.folder / f"{next(self.numbers):04}"
        return Script(case, folder, self.patience).verdict()
