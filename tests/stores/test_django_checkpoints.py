"""The view of turns and steps keeps the contract of checkpoint stores, on the rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connections

from hitl_approvals import (
    DjangoCheckpointStore,
    services,
)
from hitl_approvals.models import AgentTurn, db_now_plus
from hitl_approvals.testing import CheckpointStoreContract

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.concurrency]

SET_UP = f"""
import os
os.environ["DJANGO_SETTINGS_MODULE"] = {settings.SETTINGS_MODULE!r}
import django
django.setup()
from hitl_approvals import DjangoCheckpointStore
store = DjangoCheckpointStore()
"""


class TestDjangoCheckpoints(CheckpointStoreContract):
    derived = True

    def make_store(self):
        return DjangoCheckpointStore()

    def in_another_process(self):
        return SET_UP

    def leave_thread(self):
        connections.close_all()

    def after_a_crash(self):
        past = db_now_plus(timedelta(seconds=-2))
        AgentTurn.objects.filter(status="running").update(lease_until=past)
        services.sweep()
        AgentTurn.objects.filter(status="ready").update(next_run_at=past)
