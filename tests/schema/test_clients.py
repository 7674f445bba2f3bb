"""The clients of the documentation: generated, and used against the running site."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schema.conftest import Site
from tests.workspace import ROOT

pytestmark = pytest.mark.schema

PAGE = (ROOT / "docs/reference/api/schema.md").read_text()
TYPES = "openapi-typescript@7.13.0"
COMPILER = "typescript@5.9.3"


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


def for_site(code: str, site: Site) -> str:
    scheme, token = site.tokens["reviewer"].split()
    assert scheme == "Token"
    return code.replace("https://shop.example", site.address).replace(
        "reviewer-token", token
    )


@pytest.fixture
def folder(site: Site, tmp_path: Path) -> Path:
    (tmp_path / "openapi.json").write_text(json.dumps(site.document()))
    return tmp_path


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_client_in_python(site: Site, folder: Path):
    generator = Path(sys.executable).with_name("openapi-python-client")
    run(
        str(generator),
        *("generate", "--path", "openapi.json", "--meta", "none"),
        *("--output-path", "approvals_client"),
        folder=folder,
    )
    (folder / "approve.py").write_text(for_site(block("python"), site))

    assert run(sys.executable, "approve.py", folder=folder) == "approve by rita\n"


def test_types_for_typescript(site: Site, folder: Path):
    npx = shutil.which("npx")
    assert npx is not None, "npx is not here; it comes with Node"
    run(
        npx, "--yes", TYPES, "openapi.json", "--output", "approvals.d.ts", folder=folder
    )
    assert block("typescript") in (folder / "approvals.d.ts").read_text()
    (folder / "approve.ts").write_text(for_site(block("typescript", 1), site))
    (folder / "package.json").write_text('{"type": "module"}')
    options = (
        "--strict",
        "--target",
        "es2022",
        "--module",
        "es2022",
        "--moduleResolution",
        "bundler",
    )
    run(npx, "--yes", "-p", COMPILER, "tsc", *options, "approve.ts", folder=folder)

    assert run("node", "approve.js", folder=folder) == "approve by rita\n"
