"""SweepMark: when a sweeper last came by. Nothing depends on it but whoever looks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from hitl_approvals.models.fields import CanonicalJSONField


class SweepMark(models.Model):
    """The newest pass of all sweepers of the site; one row, written every few seconds."""

    name = models.CharField(_("name"), max_length=32, primary_key=True)
    swept_at = models.DateTimeField(_("last pass"))
    report = CanonicalJSONField(_("report"), default=dict)

    class Meta:
        verbose_name = _("sweep mark")
        verbose_name_plural = _("sweep marks")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} {self.swept_at}"
