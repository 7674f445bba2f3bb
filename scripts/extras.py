"""Runs, with each framework and engine installed alone, what has to hold then.

    python -m scripts.extras                 every extra, one after the other
    python -m scripts.extras pydantic-ai     only these

Builds one environment for each. In all of them what the adapters share is tried, and what
is said where a framework is missing; beside that the tests of the one that is there. With
none installed `make test` runs, with all of them `make test-engines`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.workspace import ROOT

EXTRAS = {
    # Without LangChain's agents: raw graphs, and the checkpointer.
    "langgraph": ("test_checkpoints*", "test_langgraph_nodes*"),
    "langchain": ("test_langgraph*",),
    "pydantic-ai": ("test_pydantic_ai*",),
    "openai-agents": ("test_openai_agents*",),
    "temporal": ("test_temporal*",),
    "dbos": ("test_dbos*",),
    "restate": ("test_restate*",),
}
"""Each extra, and the files of `tests/engines` that need no other one."""
SERVERS = {
    "langgraph": "engines-langgraph",
    "langchain": "engines-langgraph",
    "pydantic-ai": "engines-pydantic-ai",
    "temporal": "engines-temporal",
    "restate": "engines-restate",
}
"""The dependency group with what only the tests of an extra need."""


def build(extra: str) -> Path:
    """Make the environment of an extra and return its Python."""
    environment = ROOT / f".venv-extra-{extra}"
    own = environment / "bin" / "python"
    if not own.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    groups = ["test", *([SERVERS[extra]] if extra in SERVERS else [])]
    wanted = ["--editable", f"{ROOT}[base,{extra}]"]
    wanted += [f"--group={ROOT}/pyproject.toml:{group}" for group in groups]
    pins = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *pins, *wanted], check=True)
    return own


def files_of(extra: str) -> list[str]:
    """Return the test files of an extra."""
    folder = ROOT / "tests" / "engines"
    return sorted(
        {
            str(path.relative_to(ROOT))
            for pattern in EXTRAS[extra]
            for path in folder.glob(f"{pattern}.py")
        }
    )


def main(arguments: list[str]) -> int:
    """Run every extra that was named, or all; return 1 if one of them fails."""
    told = {}
    for extra in arguments or list(EXTRAS):
        print(f"\n--- {extra} alone ---", flush=True)
        own = str(build(extra))
        pytest = [own, "-m", "pytest", "-q", "--ds=tests.settings.sqlite"]
        shared = subprocess.run([*pytest, "tests/frameworks"], cwd=ROOT)
        its_own = subprocess.run([*pytest, "-m", "engines", *files_of(extra)], cwd=ROOT)
        told[extra] = shared.returncode == its_own.returncode == 0
    print()
    for extra, holds in told.items():
        print(f"extra {extra}: {'holds' if holds else 'FAILS'}")
    return 0 if all(told.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
