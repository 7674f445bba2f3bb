"""Conventions that no linter knows."""

from __future__ import annotations

import ast
import inspect

from hitl_approvals import exceptions
from hitl_approvals.conf import DEFAULTS, HitlSettings
from tests.workspace import ROOT

PACKAGE = ROOT / "hitl_approvals"


def test_every_refusal_has_a_code_of_its_own_and_says_what_it_is():
    refusals = [
        one
        for _name, one in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(one, exceptions.HitlApprovalsError)
    ]
    codes = [one.code for one in refusals]

    assert len(codes) == len(set(codes))
    assert [one for one in refusals if not one.__dict__.get("__doc__")] == []


def test_every_setting_has_a_property_and_every_property_a_setting():
    properties = {
        name.upper()
        for name, one in inspect.getmembers(HitlSettings)
        if isinstance(one, property) and name != "raw"
    }

    assert properties == set(DEFAULTS)


def test_every_module_says_what_it_is_for():
    silent = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if text.strip() and not ast.get_docstring(ast.parse(text)):
            silent.append(path.relative_to(ROOT).as_posix())

    assert [one for one in silent if "/migrations/0001" not in one] == []


def test_no_module_of_ours_is_longer_than_four_hundred_lines():
    long = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*.py")
        if len(path.read_text().splitlines()) > 400
    }

    assert {one for one in long if "/migrations/" not in one} == set()
