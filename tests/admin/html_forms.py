"""Reads a page's forms as a browser does, to send them back untouched or changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class HtmlForm:
    """One form: where it goes, and what it would send as it stands."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    """Name and value of each button that can be pressed."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[HtmlForm] = []
        self.open: HtmlForm | None = None
        self.area: str | None = None
        self.text = ""
        self.select: str | None = None
        self.options: list[tuple[str, bool]] = []
        self.option: tuple[str | None, bool] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.open = HtmlForm(given.get("action", ""), given.get("method", "get"))
            self.forms.append(self.open)
        elif self.open is None or not (name := given.get("name", "")):
            if tag == "option":
                self.option = (given.get("value"), "selected" in given)
                self.text = ""
        elif tag == "input":
            self._input(name, given)
        elif tag == "textarea":
            self.area, self.text = name, ""
        elif tag == "select":
            self.select, self.options = name, []
        elif tag == "button" and "disabled" not in given:
            self.open.buttons.append((name, given.get("value", "")))

    def _input(self, name: str, given: dict[str, str]) -> None:
        assert self.open is not None
        kind = given.get("type", "text")
        if kind in ("checkbox", "radio"):
            if "checked" in given:
                self.open.fields[name] = given.get("value", "on")
            return
        value = given.get("value", "")
        if kind != "hidden":
            # What a browser makes of a value that has no place on one line.
            value = value.replace("\r", "").replace("\n", "")
        self.open.fields[name] = value

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.open = None
        elif tag == "textarea" and self.area is not None:
            assert self.open is not None
            self.open.fields[self.area] = self.text.removeprefix("\n")
            self.area = None
        elif tag == "option" and self.option is not None:
            value, chosen = self.option
            self.options.append((self.text if value is None else value, chosen))
        elif tag == "select" and self.select is not None:
            assert self.open is not None
            chosen = [value for value, here in self.options if here]
            first = self.options[0][0] if self.options else ""
            self.open.fields[self.select] = chosen[-1] if chosen else first
            self.select = None


def forms_of(html: str) -> list[HtmlForm]:
    """Return every form of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.forms


def form_to(response: Any, ending: str) -> HtmlForm:
    """Return the form of a response that posts to an address with this ending."""
    html = response.content.decode()
    found = [
        one
        for one in forms_of(html)
        if one.method == "post" and one.action.endswith(ending)
    ]
    assert found, f"no form to {ending}"
    return found[0]


def as_sent(fields: dict[str, str]) -> dict[str, str]:
    """Return fields as they arrive: every line break is a CRLF."""
    return {
        name: value.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
        for name, value in fields.items()
    }
