"""Where interrupts wait, and which people may decide them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from hitl_approvals.models.expressions import DbNow

DEFAULT_QUEUE = "default"


class ReviewQueue(models.Model):
    """A named pile of interrupts. Without members it is open to every decider."""

    slug = models.SlugField(_("slug"), max_length=64, primary_key=True)
    title = models.CharField(_("title"), max_length=120, blank=True)
    users = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("reviewers"),
    )
    groups = models.ManyToManyField(
        "auth.Group",
        blank=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("groups of reviewers"),
    )
    requester_may_decide = models.BooleanField(
        _("the requester may decide"),
        default=False,
        help_text=_("Otherwise whoever started the turn may not approve its calls."),
    )
    created_at = models.DateTimeField(_("created"), db_default=DbNow(), editable=False)

    class Meta:
        verbose_name = _("review queue")
        verbose_name_plural = _("review queues")

    def __str__(self) -> str:
        return self.title or self.slug
