"""The three tables. They know nothing of LangGraph: values are bytes with a type's name.

Only `rows`, `pruning` and `retention` write them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from hitl_approvals.checkpoints.keys import ID_LENGTH, KEY_LENGTH, KeyField


class Checkpoint(models.Model):
    """The state of one thread's namespace at one moment, but for its large values."""

    thread_key = KeyField(max_length=KEY_LENGTH)
    ns_key = KeyField(max_length=KEY_LENGTH)
    checkpoint_id = KeyField("checkpoint", max_length=ID_LENGTH)
    """Grows with time: the latest checkpoint has the greatest."""
    parent_id = KeyField(max_length=ID_LENGTH, null=True)
    root_id = KeyField(max_length=ID_LENGTH, null=True)
    """The checkpoint of the whole graph from which this subgraph was called."""
    thread_id = models.TextField("thread")
    checkpoint_ns = models.TextField("namespace", default="", blank=True)
    run_key = KeyField(max_length=KEY_LENGTH, null=True)
    format = models.PositiveSmallIntegerField("format")
    """LangGraph's `v`: an older LangGraph does not read what a newer one wrote."""
    versions = models.TextField(default="{}")
    """JSON: the version of each channel, by which its value is found."""
    has_next = models.BooleanField("goes on")
    """Whether the graph has something to do from here, as far as its channels tell."""
    is_delta = models.BooleanField()
    """Whether values have to be rebuilt from older checkpoints (`DeltaChannel`)."""
    type = models.CharField(max_length=64)
    body = models.BinaryField()
    saved_at = models.DateTimeField("saved")

    class Meta:
        app_label = "hitl_checkpoints"
        verbose_name = "checkpoint"
        verbose_name_plural = "checkpoints"
        constraints = [
            models.UniqueConstraint(
                fields=["thread_key", "ns_key", "checkpoint_id"],
                name="hitl_checkpoint_id_uniq",
            ),
            models.CheckConstraint(
                condition=Q(format__gte=1), name="hitl_checkpoint_format_check"
            ),
            models.CheckConstraint(
                condition=~Q(checkpoint_id="") & ~Q(type=""),
                name="hitl_checkpoint_named_check",
            ),
        ]
        indexes = [
            models.Index(fields=["saved_at"], name="hitl_checkpoint_saved_idx"),
            models.Index(fields=["run_key"], name="hitl_checkpoint_run_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} {self.checkpoint_id}"


class ChannelValue(models.Model):
    """One channel's value at one version, shared by all checkpoints that have it."""

    thread_key = KeyField(max_length=KEY_LENGTH)
    ns_key = KeyField(max_length=KEY_LENGTH)
    slot = KeyField(max_length=KEY_LENGTH)
    """Key of channel and version."""
    channel = models.TextField("channel")
    type = models.CharField(max_length=64)
    value = models.BinaryField()

    class Meta:
        app_label = "hitl_checkpoints"
        verbose_name = "channel value"
        verbose_name_plural = "channel values"
        constraints = [
            models.UniqueConstraint(
                fields=["thread_key", "ns_key", "slot"], name="hitl_value_slot_uniq"
            ),
            models.CheckConstraint(
                condition=~Q(type=""), name="hitl_value_named_check"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.slot}"


class PendingWrite(models.Model):
    """What a task wrote after a checkpoint, and no later checkpoint holds yet.

    There may be no such checkpoint: LangGraph saves both in the background.
    """

    thread_key = KeyField(max_length=KEY_LENGTH)
    ns_key = KeyField(max_length=KEY_LENGTH)
    checkpoint_id = KeyField("checkpoint", max_length=ID_LENGTH)
    task_id = KeyField("task", max_length=ID_LENGTH)
    idx = models.IntegerField()
    """The write's place in its task; errors, interrupts and answers have fixed ones."""
    task_path = models.TextField(default="", blank=True)
    channel = models.TextField("channel")
    type = models.CharField(max_length=64)
    value = models.BinaryField()

    class Meta:
        app_label = "hitl_checkpoints"
        verbose_name = "pending write"
        verbose_name_plural = "pending writes"
        constraints = [
            models.UniqueConstraint(
                fields=["thread_key", "ns_key", "checkpoint_id", "task_id", "idx"],
                name="hitl_write_idx_uniq",
            ),
            models.CheckConstraint(
                condition=~Q(checkpoint_id="") & ~Q(type=""),
                name="hitl_write_named_check",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} of {self.task_id}"
