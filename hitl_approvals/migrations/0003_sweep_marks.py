"""A place where a sweeper notes that it came by."""

from __future__ import annotations

from django.db import migrations, models

import hitl_approvals.models.fields


class Migration(migrations.Migration):
    dependencies = [("hitl_approvals", "0002_append_only_events")]
    operations = [
        migrations.CreateModel(
            name="SweepMark",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                        verbose_name="name",
                    ),
                ),
                ("swept_at", models.DateTimeField(verbose_name="last pass")),
                (
                    "report",
                    hitl_approvals.models.fields.CanonicalJSONField(
                        default=dict, verbose_name="report"
                    ),
                ),
            ],
            options={
                "verbose_name": "sweep mark",
                "verbose_name_plural": "sweep marks",
                "default_permissions": (),
            },
        ),
    ]
