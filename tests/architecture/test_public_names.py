"""The package can be imported anywhere: before the apps are ready, without settings."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import hitl_approvals
from tests.workspace import ROOT


def run(program):
    """Run a program in a process that knows no settings module."""
    environment = {**os.environ}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_all_public_names_can_be_imported_without_settings():
    names = ", ".join(hitl_approvals.__all__)
    done = run(f"from hitl_approvals import {names}; print('fine')")

    assert done.stdout.strip() == "fine", done.stderr


def test_a_function_that_was_imported_early_works_once_the_apps_are_ready():
    done = run(
        "import os\n"
        "from hitl_approvals import start_turn\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings.sqlite'\n"
        "import django; django.setup()\n"
        "import hitl_approvals\n"
        "try:\n"
        "    start_turn('nobody', {})\n"
        "except hitl_approvals.HitlApprovalsError as error:\n"
        "    print(start_turn.__name__, error.code)\n"
        "print(hitl_approvals.start_turn.__module__)"
    )

    assert done.stdout.splitlines() == [
        "start_turn agent_not_found",
        "hitl_approvals.engine",
    ], done.stderr


def test_a_site_without_the_admin_starts():
    done = run(
        "from django.conf import settings\n"
        "apps = ['contenttypes', 'auth']\n"
        "settings.configure(\n"
        "    SECRET_KEY='x', USE_TZ=True,\n"
        "    INSTALLED_APPS=[*(f'django.contrib.{one}' for one in apps), "
        "'hitl_approvals'],\n"
        "    TEMPLATES=[{'BACKEND': "
        "'django.template.backends.django.DjangoTemplates', 'APP_DIRS': True}],\n"
        "    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', "
        "'NAME': ':memory:'}},\n"
        ")\n"
        "import django; django.setup()\n"
        "from django.template import engines\n"
        "print('hitl_approvals' in engines['django'].engine.libraries)\n"
        "from django.core.management import call_command\n"
        "call_command('check', fail_level='ERROR')"
    )

    assert done.stdout.splitlines()[:1] == ["True"], done.stderr
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_neither_models_nor_celery():
    done = run(
        "import sys, hitl_approvals;"
        "print([n for n in sys.modules if n.startswith(('celery', 'django.db'))])"
    )

    assert done.stdout.strip() == "[]", done.stderr


def test_tools_and_decisions_can_be_made_without_settings():
    done = run(
        "from hitl_approvals import Approve, Edit, Reject, allowlist, tool\n"
        "from decimal import Decimal\n"
        "@tool(requires_approval=allowlist(['pay']))\n"
        "def pay(amount: Decimal) -> str:\n"
        "    return str(amount)\n"
        "print(pay.name, pay.unguarded(Decimal(1)), Reject('no').reason)"
    )

    assert done.stdout.strip() == "pay 1 no", done.stderr


def test_dir_lists_the_public_names_and_an_unknown_one_is_an_attribute_error():
    assert set(hitl_approvals.__all__) <= set(dir(hitl_approvals))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hitl_approvals.nothing  # noqa: B018


def test_all_is_sorted_and_complete():
    assert sorted(hitl_approvals.__all__) == sorted(hitl_approvals._HOME)
    assert list(hitl_approvals.__all__) == sorted(hitl_approvals.__all__)
