"""Builds throw-away Django sites from the documentation's own blocks, and runs in them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.core.management import call_command

from tests.docs.blocks import ROOT, Block
from tests.docs.nursery import Nursery

PROJECT = "shop"
_DRIVER = Path(__file__).with_name("drive.py")


@dataclass(frozen=True, slots=True)
class Site:
    """A Django project in a folder of its own, driven only from outside."""

    folder: Path
    nursery: Nursery
    broker: str = "memory://"

    @classmethod
    def make(cls, folder: Path, blocks: Iterable[Block], nursery: Nursery) -> Site:
        """Make what `startproject` makes, and put the blocks' files into it."""
        folder.mkdir(parents=True)
        site = cls(folder, nursery)
        call_command("startproject", PROJECT, str(folder))
        site.write(blocks)
        return site

    def copy(self, folder: Path, *, broker: str = "memory://") -> Site:
        """Copy the site with its database."""
        shutil.copytree(self.folder, folder)
        return Site(folder, self.nursery, broker)

    def write(self, blocks: Iterable[Block], *, replace: Sequence[str] = ()) -> None:
        """Append each file's blocks to it, in order."""
        for name in replace:
            (self.folder / name).unlink(missing_ok=True)
        for block in blocks:
            if not block.file:
                continue
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"\n\n{block.text}\n")

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it printed."""
        return self.run("manage.py", *arguments)

    def execute(self, blocks: Sequence[Block]) -> None:
        """Run the Python blocks that are neither files nor skipped, in order."""
        work = []
        for at, block in enumerate(blocks):
            if not block.runs:
                continue
            after = blocks[at + 1] if at + 1 < len(blocks) else None
            output = after.text if after is not None and after.is_output else None
            work.append(
                {
                    "page": block.page,
                    "line": block.line,
                    "text": block.text,
                    "output": output,
                }
            )
        path = self.folder / "blocks.json"
        path.write_text(json.dumps(work), encoding="utf-8")
        self.run(str(_DRIVER), str(path))

    def run(self, script: str, *arguments: str) -> str:
        """Run a script in the site's folder and return its output.

        Raises:
            AssertionError: It failed; the message holds what it printed.
        """
        code, output = self.nursery.run(
            script, *arguments, folder=self.folder, environment=self.environment()
        )
        assert code == 0, f"{script} {' '.join(arguments)}\n{output}"
        return output

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the site's processes."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": f"{PROJECT}.settings",
            "CELERY_BROKER_URL": self.broker,
        }
