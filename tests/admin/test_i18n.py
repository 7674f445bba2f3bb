"""Every word of the desk can be translated, and the German catalogue has them all."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Message
from babel.messages.extract import extract_python
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

import hitl_approvals
from tests.admin.scenes import LIST, ask, charge_in_doubt, refund, start, url

ROOT = Path(hitl_approvals.__file__).parent
LOCALE = ROOT / "locale" / "de" / "LC_MESSAGES"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
DESK = sorted((ROOT / "admin").rglob("*.py"))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|%%|\{\w*\}|</?\w+[^>]*>")
QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
KEYWORDS: dict[str, Any] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "gettext_noop": None,
}


def catalogue() -> list[Message]:
    with (LOCALE / "django.po").open("rb") as file:
        return [one for one in read_po(file, locale="de") if one.id]


def both(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def test_every_message_has_a_german_one_and_none_is_a_guess() -> None:
    messages = catalogue()

    assert len(messages) > 500
    assert [one.id for one in messages if not all(both(one.string))] == []
    assert [one.id for one in messages if one.fuzzy] == []


def test_placeholders_and_markup_agree() -> None:
    wrong = [
        (source, german)
        for one in catalogue()
        for source, german in zip(both(one.id), both(one.string), strict=True)
        if sorted(PLACEHOLDER.findall(source)) != sorted(PLACEHOLDER.findall(german))
    ]

    assert wrong == []


def test_the_compiled_catalogue_is_that_of_the_source() -> None:
    with (LOCALE / "django.mo").open("rb") as file:
        compiled = {(m.context, both(m.id)): both(m.string) for m in read_mo(file)}

    for one in catalogue():
        assert compiled[one.context, both(one.id)] == both(one.string)


def said_by_templates() -> Iterator[tuple[str | None, str]]:
    calls = re.compile(rf"\b(n?p?gettext)\(u?({QUOTED})(?:,\s*u?({QUOTED}))?")
    for path in TEMPLATES:
        text = templatize(path.read_text(encoding="utf-8"))
        for name, first, second in calls.findall(text):
            if name in ("pgettext", "npgettext"):
                yield ast.literal_eval(first), ast.literal_eval(second)
            else:
                yield None, ast.literal_eval(first)


def said_by_code() -> Iterator[tuple[str | None, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        source = io.BytesIO(path.read_bytes())
        for _line, name, words, _comments in extract_python(source, KEYWORDS, [], {}):
            found = both(words)
            if name.startswith(("pgettext", "npgettext")):
                yield found[0], found[1]
            elif found[0]:
                yield None, found[0]


def test_nothing_that_is_said_is_missing_from_the_catalogue() -> None:
    known = {(one.context, both(one.id)[0]) for one in catalogue()}

    templates, code = set(said_by_templates()), set(said_by_code())

    assert len(templates) > 200
    assert len(code) > 300
    assert {one for one in templates | code if one[1]} - known == set()


TAGS = re.compile(
    r"{%\s*blocktranslate.*?{%\s*endblocktranslate\s*%}"
    r"|{%\s*translate.*?%}|{%.*?%}|{{.*?}}|{#.*?#}",
    re.DOTALL,
)
SPOKEN = re.compile(r'\s(?:aria-label|title|alt|placeholder|data-label)="([^"]*)"')


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_bare_words(path: Path) -> None:
    text = TAGS.sub("", path.read_text(encoding="utf-8"))
    text = re.sub(r"<kbd>.*?</kbd>|<style.*?</style>", "", text, flags=re.DOTALL)
    spoken = SPOKEN.findall(text)
    seen = re.sub(r'<[^>]*>|&\w+;|[\w-]+="[^"]*"', " ", text)

    assert re.findall(r"[A-Za-z]{2,}", " ".join([seen, *spoken])) == []


def bare_sentences(tree: ast.Module) -> Iterator[str]:
    """Find text with blanks that goes neither to a translation nor to a programmer."""
    silent: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            silent.add(id(node.value))
        if isinstance(node, (ast.Raise, ast.AnnAssign, ast.arg)):
            parts: list[ast.AST] = list(
                ast.walk(node) if isinstance(node, ast.Raise) else []
            )
            annotation = getattr(node, "annotation", None)
            parts += list(ast.walk(annotation)) if annotation else []
            silent.update(id(one) for one in parts)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in KEYWORDS or name in ("cast", "compile", "strftime"):
                silent.update(id(one) for arg in node.args for one in ast.walk(arg))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in silent
        ):
            text = re.sub(r"<[^>]*>|%\(\w+\)s|\{\w*\}", "", node.value)
            ours = "desk-" in text or "\\." in text  # a class, or a pattern
            if not ours and re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", text):
                yield node.value


@pytest.mark.parametrize("path", DESK, ids=lambda path: path.name)
def test_no_module_of_the_desk_says_a_bare_sentence(path: Path) -> None:
    assert list(bare_sentences(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.django_db(transaction=True)
def test_the_desk_speaks_german(desk: Client, settings: Any) -> None:
    settings.LANGUAGE_CODE = "de"
    row, doubt = refund(), charge_in_doubt()
    start(*[("desk_hurry", {"service": name}) for name in "ab"])
    pages = [
        LIST,
        url(row),
        url(row, "edit"),
        url(doubt),
        url(ask("Welche?")),
        f"{LIST}keys/",
    ]

    shown = {page: desk.get(page).content.decode() for page in pages}

    assert 'lang="de"' in shown[LIST]
    assert "Offene Rückfragen" in shown[LIST]
    assert "2 Aufrufe warten" in shown[LIST]
    assert "Genehmigen und ausführen" in shown[url(row)]
    assert "einmal mit genau diesen Argumenten aus" in shown[url(row)]
    assert "Sehen, was sich ändert" in shown[url(row, "edit")]
    assert "lief vielleicht, vielleicht nicht" in shown[url(doubt)]
    english = re.compile(r"\b(the|and|this|which|not|with|needed)\b")
    for page, html in shown.items():
        body = html.partition('<div class="desk"')[2]
        text = re.sub(
            r"<(code|q|kbd|bdi|pre)\b.*?</\1>|<[^>]*>", " ", body, flags=re.DOTALL
        )
        for known in (
            "I want my money back",
            "Paid back to the customer; at most what the order cost",
        ):
            text = text.replace(known, "")
        left = [
            text[max(0, one.start() - 60) : one.end() + 60]
            for one in english.finditer(text)
        ]
        assert left == [], page


@pytest.mark.parametrize("language", ["de", "en"])
def test_plurals_take_their_number(language: str) -> None:
    with translation.override(language):
        one = translation.ngettext("%d call waits", "%d calls wait", 1) % 1
        two = translation.ngettext("%d call waits", "%d calls wait", 2) % 2

    assert (one[0], two[0]) == ("1", "2")
    assert one[1:] != two[1:]
