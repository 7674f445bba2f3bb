"""The form for an agent client: its name, its queues and what it may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hitl_approvals.admin.text import plain
from hitl_approvals.conf import hitl_settings
from hitl_approvals.models import DEFAULT_QUEUE, AgentClient, ReviewQueue
from hitl_approvals.services import client_limits
from hitl_approvals.services.client_limits import MOST, NUMBERS
from hitl_approvals.text import storable

MOST_QUEUES = client_limits.MOST_QUEUES
"""Queues that the form offers, beside those that were chosen already."""


class ClientForm(forms.Form):
    """What a person sets of a client. Everything but the name can be changed later.

    Each limit that is a number has a field for it, and a tick box for none at all; with
    neither it is the site's.
    """

    use_required_attribute = False

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        help_text=gettext_lazy(
            "Reviewers read it beside each request, and the timeline keeps it. It "
            "cannot be changed later."
        ),
    )
    queue = forms.ChoiceField(
        label=gettext_lazy("Queue"),
        help_text=gettext_lazy("Where its requests wait, unless it names another one."),
    )
    queues = forms.MultipleChoiceField(
        label=gettext_lazy("Other queues that it may name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("A request for any other queue is refused."),
    )
    open = forms.IntegerField(
        label=gettext_lazy("Most open requests"),
        required=False,
        min_value=1,
        max_value=MOST,
        help_text=gettext_lazy(
            "Requests that wait for people at the same time. One more is refused until "
            "somebody has decided."
        ),
    )
    open_none = forms.BooleanField(required=False)
    per_minute = forms.IntegerField(
        label=gettext_lazy("Most writes a minute"),
        required=False,
        min_value=1,
        max_value=MOST,
        help_text=gettext_lazy(
            "Requests, fetches and reports. One more is told to come later."
        ),
    )
    per_minute_none = forms.BooleanField(required=False)
    waiting = forms.IntegerField(
        label=gettext_lazy("Most calls that wait"),
        required=False,
        min_value=1,
        max_value=MOST,
        help_text=gettext_lazy(
            "Calls with ?wait= that are held open at the same time for a decision."
        ),
    )
    waiting_none = forms.BooleanField(required=False)

    def __init__(
        self, data: Mapping[str, Any] | None = None, client: AgentClient | None = None
    ) -> None:
        own = own_limits(client)
        queue = str(client.queue_id) if client else DEFAULT_QUEUE
        initial = {
            "queue": queue,
            "queues": own.get("queues", []),
            **{name: own.get(name) for name in NUMBERS},
            **{f"{name}_none": own.get(name, 0) is None for name in NUMBERS},
        }
        super().__init__(data, initial=initial, label_suffix="")
        if client is not None:
            del self.fields["name"]
        offered = _queues([queue, *initial["queues"]])
        for field in ("queue", "queues"):
            choices: Any = self.fields[field]
            choices.choices = offered

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not storable(name):
            raise forms.ValidationError(
                _("A name cannot hold this character."), code="unstorable"
            )
        if AgentClient.objects.filter(name=name).exists():
            raise forms.ValidationError(
                _(
                    "There is a client of this name. If you have just made it and did "
                    "not see its token, open it and make a new token."
                ),
                code="taken",
            )
        return name

    def clean(self) -> None:
        for name in NUMBERS:
            if self.data.get(name, "").strip() and self.cleaned_data[f"{name}_none"]:
                self.add_error(name, _("Give a number or tick the box, not both."))

    def limits(self) -> dict[str, Any]:
        """Return the limits as the row keeps them; what the site says has no key."""
        made: dict[str, Any] = {}
        for name in NUMBERS:
            if self.cleaned_data[f"{name}_none"]:
                made[name] = None
            elif self.cleaned_data[name] is not None:
                made[name] = self.cleaned_data[name]
        own = self.cleaned_data["queue"]
        others = [one for one in self.cleaned_data["queues"] if one != own]
        return {**made, "queues": others} if others else made

    def numbers(self) -> Iterable[tuple[Any, Any, str]]:
        """Yield each limit: its field, its tick box, and what holds without either."""
        for name in NUMBERS:
            site = hitl_settings.client_limits[name]
            words = _("Empty: as the site has it, %s.") % number(site)
            yield self[name], self[f"{name}_none"], words


def own_limits(client: AgentClient | None) -> dict[str, Any]:
    """Return the limits that differ from the site's; what does not fit is left out."""
    kept = client.limits if client is not None else {}
    kept = kept if isinstance(kept, Mapping) else {}
    made = {
        name: kept[name]
        for name in NUMBERS
        if name in kept and (kept[name] is None or client_limits.is_number(kept[name]))
    }
    queues = kept.get(client_limits.QUEUES)
    if isinstance(queues, list):
        made["queues"] = [one for one in queues if isinstance(one, str)]
    return made


def limit(client: AgentClient, name: str) -> tuple[int | None, bool]:
    """Return what holds for a client, and whether that is its own."""
    return client_limits.limit_of(client, name), name in own_limits(client)


def number(value: int | None) -> str:
    """Return a limit in words."""
    if value is None:
        return _("no limit")
    return number_format(value, force_grouping=True)


def _queues(named: list[str]) -> list[tuple[str, str]]:
    """Return the queues to choose from, those that are chosen already among them."""
    rows = ReviewQueue.objects.order_by("slug").values_list("slug", "title")
    found = dict(rows[:MOST_QUEUES])
    missing = [one for one in named if one not in found]
    if missing:
        found |= dict(rows.filter(slug__in=missing))
    return [
        (slug, plain(f"{title} ({slug})" if title else slug, 120))
        for slug, title in sorted(found.items())
    ]
