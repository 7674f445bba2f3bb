"""Deciding many calls that were ticked in the list: each in full, each by itself.

Never a standing rule and never all or nothing: every row is one decision of the service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import permissions, services
from hitl_approvals.admin import bulk_outcome, bulk_rows, history, parsing, reasons
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.decisions import Approve, Decision, Reject
from hitl_approvals.enums import DecisionType, Door, InterruptStatus
from hitl_approvals.exceptions import HitlApprovalsError

MOST = 50
"""Rows of one page: as many as the list shows."""
VERBS = (DecisionType.APPROVE.value, DecisionType.REJECT.value)


@dataclass(slots=True)
class Chosen:
    """What a person chose in the list, and sent from the page that followed."""

    verb: str
    ids: list[UUID]
    turns: list[UUID]
    ticked: dict[UUID, int] = field(default_factory=dict)
    """Revision by row, of what is to be decided."""
    key: str = ""
    reason: str = ""
    canned: str = ""

    @property
    def told(self) -> str:
        """The reason that is meant, from the site's list, by hand, or both."""
        return reasons.joined(self.canned, self.reason)

    @classmethod
    def read(cls, data: QueryDict) -> Chosen:
        """Read a form; never fails, what cannot be read was not chosen."""
        ticked: dict[UUID, int] = {}
        for value in data.getlist("row"):
            name, _colon, number = value.partition(":")
            if number.isascii() and number.isdecimal() and len(number) < 10:
                for key in _ids([name]):
                    ticked.setdefault(key, int(number))
        verb = data.get("do", "")
        return cls(
            verb=verb if verb in VERBS else "",
            ids=_ids([*data.getlist("chosen"), *map(str, ticked)]),
            turns=_ids(data.getlist("turn")),
            ticked=ticked,
            key=data.get("key", "")[:100],
            reason=parsing.lines(data.get("reason", "")),
            canned=data.get("canned", "")[:1000],
        )

    def with_turns(self, request: HttpRequest) -> list[UUID]:
        """Return the ids, those of whole turns that were ticked included."""
        if not self.turns:
            return self.ids
        waiting = permissions.visible_to(person(request)).filter(
            turn__in=self.turns[:MOST], status=InterruptStatus.PENDING
        )
        keys = waiting.order_by("turn", "position", "pk").values_list("pk", flat=True)
        return list(dict.fromkeys([*self.ids, *keys[: MOST + 1]]))

    def query(self) -> str:
        """Return the query string that shows the same choice again."""
        fields = [("do", self.verb), *(("chosen", str(one)) for one in self.ids)]
        return urlencode(fields)


def bulk_view(desk: DeskAdmin, request: HttpRequest) -> HttpResponse:
    """Show what was ticked, each call in full; decide what is posted from there."""
    if not person(request).has_perm(permissions.DECIDE):
        missing = _("You need the right “Can decide interrupts” to decide.")
        return desk.forbidden(request, missing)
    posted = request.method == "POST"
    chosen = Chosen.read(request.POST if posted else request.GET)
    if not chosen.verb:
        return HttpResponseRedirect(desk.link("changelist"))
    if not posted:
        chosen.key, chosen.ids = str(uuid4()), chosen.with_turns(request)
        return _page(desk, request, chosen)
    faults: dict[str, str] = {}
    decision = _decision(chosen, faults)
    if decision is None or faults:
        return _page(desk, request, chosen, faults)
    return _decide(desk, request, chosen, decision)


def address(desk: DeskAdmin, request: HttpRequest) -> str:
    """Return where what was posted can be looked at again."""
    return f"{desk.link('bulk')}?{Chosen.read(request.POST).query()}"


def _decision(chosen: Chosen, faults: dict[str, str]) -> Decision | None:
    """Return what is to be recorded for every row, or note what is missing."""
    if not chosen.ticked:
        faults["rows"] = _("Tick at least one call.")
    elif len(chosen.ticked) > MOST:
        faults["rows"] = _too_many(len(chosen.ticked))
    if not chosen.key.strip():
        faults["rows"] = _("The form was not complete. Look at it again.")
        chosen.key = str(uuid4())
    if chosen.verb == DecisionType.APPROVE:
        return Approve()
    if not reasons.is_offered(chosen.canned):
        faults["reason"] = _("This saved reason is not offered any more.")
        return None
    if not chosen.told.strip():
        faults["reason"] = _("Say why, so that the agents can do better.")
        return None
    try:
        return Reject(chosen.told)
    except TypeError as error:
        faults["reason"] = str(error)
        return None


def _decide(
    desk: DeskAdmin, request: HttpRequest, chosen: Chosen, decision: Decision
) -> HttpResponse:
    """Decide row by row, and go to the page that tells what became of each."""
    user = person(request)
    rows = permissions.visible_to(user).in_bulk(list(chosen.ticked))
    codes: dict[UUID, str] = {}
    for key, revision in chosen.ticked.items():
        try:
            receipt = services.decide(
                key,
                decision,
                by=user,
                via=Door.ADMIN.value,
                revision=revision,
                # A form that is sent twice is the same request for each of its rows.
                key=f"bulk:{chosen.key}:{key}",
            )
        except HitlApprovalsError as error:
            codes[key] = error.code
            continue
        codes[key] = bulk_outcome.DONE
        if not receipt.replayed and key in rows:
            words = history.decided_words(receipt.decision)
            desk.log_change(
                request, rows[key], f"{words}: {bulk_rows.name_of(rows[key])}"
            )
    left_out = [one for one in chosen.ids if one not in chosen.ticked]
    query = bulk_outcome.query(chosen.verb, codes, left_out[:MOST])
    return HttpResponseRedirect(f"{desk.link('bulk_outcome')}?{query}")


def _page(
    desk: DeskAdmin,
    request: HttpRequest,
    chosen: Chosen,
    faults: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Render the page that lists each call in full; changes nothing."""
    user, now = person(request), timezone.now()
    posted = request.method == "POST"
    shown = chosen.ids[:MOST]
    rows = bulk_rows.gather(
        desk, user, shown, chosen.verb, now, chosen.ticked if posted else None
    )
    open_ = [one for one in rows if not one.left_out]
    title = _title(chosen.verb, len(open_))
    context = {
        "title": _("Error: %s") % title if faults else title,
        "heading": title,
        "approve": chosen.verb == DecisionType.APPROVE,
        "verb": chosen.verb,
        "key": chosen.key,
        "rows": rows,
        "open": open_,
        "tools": bulk_rows.tools(open_),
        "lead": _lead(chosen, rows, open_),
        "too_many": _too_many(len(chosen.ids)) if len(chosen.ids) > MOST else "",
        "faults": faults or {},
        "changed": [one for one in open_ if one.changed],
        "reason": chosen.reason,
        "reasons": reasons.choices(),
        "canned": chosen.canned,
        "bulk_url": desk.link("bulk"),
    }
    return desk.page(request, "bulk.html", context)


def _title(verb: str, count: int) -> str:
    if verb == DecisionType.APPROVE:
        return ngettext("Approve %d call?", "Approve %d calls?", count) % count
    return ngettext("Reject %d request?", "Reject %d requests?", count) % count


def _lead(
    chosen: Chosen, rows: Sequence[bulk_rows.BulkRow], open_: Sequence[Any]
) -> list[str]:
    """Say how many were chosen, and what became of the rest."""
    listed = min(len(chosen.ids), MOST)
    if not listed:
        return [_("You ticked nothing in the list.")]
    said = [ngettext("You chose %d.", "You chose %d.", listed) % listed]
    out = len(rows) - len(open_)
    if out:
        text = ngettext(
            "%d cannot be decided here now and is left out below.",
            "%d cannot be decided here now and are left out below.",
            out,
        )
        said.append(text % out)
    if lost := listed - len(rows):
        text = ngettext(
            "%d is not there, or not for you to see.",
            "%d are not there, or not for you to see.",
            lost,
        )
        said.append(text % lost)
    if open_:
        said.append(_("Read each one: every one is decided by itself."))
    return said


def _too_many(count: int) -> str:
    return _(
        "%(count)d are too many for one page: at most %(most)d are decided together. "
        "The others stay as they are."
    ) % {"count": count, "most": MOST}


def _ids(texts: Sequence[str]) -> list[UUID]:
    """Return the ids in texts, each once; what is none was not chosen."""
    found: dict[UUID, None] = {}
    for text in texts[: 20 * MOST]:
        try:
            found[UUID(text)] = None
        except ValueError:
            continue
    return list(found)
