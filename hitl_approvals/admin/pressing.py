"""The buttons inside a form made from a schema: add, remove, put back, JSON or fields.

Each posts the whole form and stores nothing, so that it works without a script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from hitl_approvals.admin.forms import SchemaForm
from hitl_approvals.admin.groups import Group
from hitl_approvals.admin.part_rules import fits
from hitl_approvals.admin.shapes import MISSING

ADD, DROP, AS_JSON, AS_FORM, UNDO = "add", "drop", "as_json", "as_form", "undo"
BUTTONS = (ADD, DROP, AS_JSON, AS_FORM, UNDO)


def pressed(data: Mapping[str, Any]) -> bool:
    """Tell whether one of these buttons sent the form."""
    return any(data.get(one) for one in BUTTONS)


def press(form: SchemaForm, data: Mapping[str, Any]) -> None:
    """Do what the button says that sent a form; the form has been read."""
    if undone := data.get(UNDO):
        form.put_back(str(undone))
    if (group := _group(form, data, ADD)) is not None:
        group.add()
    if (group := _group(form, data, DROP)) is not None:
        number = str(data[DROP]).partition(":")[2]
        if number.isascii() and number.isdecimal():
            group.drop(int(number[:6]))
    if (group := _group(form, data, AS_JSON)) is not None and group.as_form:
        write_as_json(group)
    if (group := _group(form, data, AS_FORM)) is not None and not group.as_form:
        fill_in(group)


def write_as_json(group: Group) -> None:
    """Go on with text, if what is in the form can be read."""
    value = group.value()
    if not any(True for _fault in group.faults()):
        group.as_form = False
        group.plain.load(value)


def fill_in(group: Group) -> None:
    """Go on with a form, if it can carry what is in the text."""
    value = group.plain.value()
    if group.plain.errors and group.plain.raw.strip():
        return
    group.plain.errors = []
    if value is MISSING or value is None:
        value = [] if group.is_list else {}
    if not group.carries(value):
        kind = _("a list") if group.is_list else _("an object")
        group.plain.errors = [_("Only %s can be filled in as a form.") % kind]
    elif not fits(value):
        group.plain.errors = [_("This is too large for a form; go on with JSON.")]
    else:
        group.load(value)


def _group(form: SchemaForm, data: Mapping[str, Any], button: str) -> Group | None:
    key = str(data.get(button) or "").partition(":")[0]
    return form.group(key) if key else None
