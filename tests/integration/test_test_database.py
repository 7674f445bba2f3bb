"""The databases of the suite are what the suite says they are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection

from tests.workspace import ROOT, run_name


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.django_db
def test_the_database_is_this_runs_own():
    assert run_name() in connection.settings_dict["NAME"]


@pytest.mark.django_db
def test_sqlite_is_set_up_as_the_documentation_says_but_for_the_disk():
    if connection.vendor != "sqlite":
        pytest.skip("SQLite only")

    with connection.cursor() as cursor:
        journal, synchronous, busy = (
            cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "busy_timeout")
        )

    assert (journal, synchronous, busy) == ("wal", 0, 20_000)
    assert connection.transaction_mode == "IMMEDIATE"


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_threads_have_connections_of_their_own_to_one_database():
    seen = []

    def look():
        seen.append(Group.objects.filter(name="shared").exists())
        seen.append(connection.connection)
        connection.close()

    Group.objects.create(name="shared")
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert seen[0]
    assert seen[1] is not connection.connection


@pytest.mark.django_db(transaction=True)
def test_a_process_that_a_test_starts_meets_the_same_database():
    Group.objects.create(name="shared")
    program = (
        "import django; django.setup();"
        "from django.contrib.auth.models import Group;"
        "print(Group.objects.get().name)"
    )

    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE},
        capture_output=True,
        text=True,
    )

    assert child.stdout.strip() == "shared", child.stderr
