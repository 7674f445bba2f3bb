"""Runs the suite on SQLite with the other supported Pythons and Djangos.

Builds one environment for each pair that this machine has a Python for, and says which
pairs it had to leave out. Takes the pins of `constraints.txt`, but for Django's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.workspace import ROOT

PAIRS = (("3.12", "6.0"), ("3.13", "6.1"))
"""Python and Django; 3.11 with 5.2 is what `make test` runs on."""

# Needs a browser's driver, which these environments do not have; see `make test-browser`.
_LEFT_OUT = ("--ignore=tests/browser",)

# Packages whose pinned version depends on Python's or Django's.
_UNPINNED = ("django",)


def interpreter(version: str) -> Path | None:
    """Find a Python of that version: on the path, else among pyenv's."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = sorted((pyenv / "versions").glob(f"{version}.*"), reverse=True)
    candidates += [str(folder / "bin" / "python") for folder in versions]
    for candidate in filter(None, candidates):
        # pyenv puts commands on the path that only say which version is not chosen.
        answer = subprocess.run(
            [candidate, "--version"], capture_output=True, text=True
        )
        if answer.stdout.startswith(f"Python {version}."):
            return Path(candidate)
    return None


def build(python: Path, version: str, django: str) -> Path:
    """Make the environment for a pair and return its Python."""
    environment = ROOT / f".venv-{version}"
    own = environment / "bin" / "python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", environment], check=True)
    pins = environment / "constraints.txt"
    pins.write_text(
        "".join(
            line
            for line in (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
            if line.partition("==")[0].lower() not in _UNPINNED
        )
    )
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    wanted = ["--editable", f"{ROOT}[base]", "--group", f"{ROOT}/pyproject.toml:test"]
    subprocess.run(
        [*pip, "--constraint", str(pins), *wanted, f"django~={django}.0"], check=True
    )
    return own


def main(arguments: list[str]) -> int:
    """Run every pair; return 1 if one of them fails or none could run."""
    codes = []
    for version, django in PAIRS:
        python = interpreter(version)
        if python is None:
            print(f"LEFT OUT: Django {django}, there is no Python {version} here")
            continue
        print(f"\n--- Python {version}, Django {django} ---", flush=True)
        own = build(python, version, django)
        suite = [str(own), "-m", "pytest", "--ds=tests.settings.sqlite", *_LEFT_OUT]
        codes.append(subprocess.run([*suite, *arguments], cwd=ROOT).returncode)
    return 0 if codes and not any(codes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
