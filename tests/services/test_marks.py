"""A sweeper leaves a trace, seldom enough and without ever waiting."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest
from django.db import (
    DatabaseError,
    InterfaceError,
    connection,
    connections,
    transaction,
)
from django.utils import timezone

from hitl_approvals import services
from hitl_approvals.models import SweepMark, db_now_plus
from hitl_approvals.services import marks

pytestmark = pytest.mark.django_db


def age(mark: SweepMark) -> timedelta:
    return timezone.now() - mark.swept_at


def make_old() -> None:
    SweepMark.objects.update(swept_at=db_now_plus(timedelta(minutes=-1)))


def test_first_pass_is_noted_with_what_it_moved_and_where() -> None:
    services.sweep()

    mark = SweepMark.objects.get()
    assert abs(age(mark)) < timedelta(seconds=30)
    assert mark.report["moved"]["revoked"] == 0
    assert mark.report["process"]


def test_passes_that_follow_at_once_write_nothing() -> None:
    services.sweep()
    before = SweepMark.objects.get().swept_at

    assert marks.note_sweep({"revoked": 1}) is False

    assert SweepMark.objects.get().swept_at == before


def test_an_old_mark_is_renewed() -> None:
    services.sweep()
    make_old()

    assert marks.note_sweep({"revoked": 7}) is True

    mark = SweepMark.objects.get()
    assert abs(age(mark)) < timedelta(seconds=30)
    assert mark.report["moved"] == {"revoked": 7}


@pytest.mark.parametrize("kind", [DatabaseError, InterfaceError])
def test_a_mark_that_cannot_be_written_ends_no_pass(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[Exception],
) -> None:
    def broken(report: object) -> bool:
        raise kind("the disk is full")

    monkeypatch.setattr(marks, "_note", broken)

    with caplog.at_level(logging.WARNING, logger="hitl_approvals"):
        report = services.sweep()

    assert report.revoked == 0
    assert caplog.messages == ["The sweeper could not note its pass."]


@pytest.mark.django_db(transaction=True)
def test_two_first_passes_at_once_leave_one_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    barrier = threading.Barrier(2)
    first = marks._first

    def together(report: dict[str, object]) -> bool:
        barrier.wait(timeout=10)
        return first(report)

    monkeypatch.setattr(marks, "_first", together)
    written: list[bool] = []

    def sweep() -> None:
        try:
            written.append(marks.note_sweep({}))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert sorted(written) == [False, True]
    assert SweepMark.objects.count() == 1


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
def test_a_mark_that_another_process_holds_is_left_alone() -> None:
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has one writer")
    services.sweep()
    make_old()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                SweepMark.objects.select_for_update().get()
                held.set()
                done.wait(timeout=20)
        finally:
            connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(timeout=10)
        assert marks.note_sweep({}) is False
    finally:
        done.set()
        thread.join(timeout=20)
