"""Texts of others must be stored on every database, or refused by name."""

from __future__ import annotations

import pytest

from hitl_approvals.text import cleaned, storable


@pytest.mark.parametrize("text", ["", "plain", "f\u00fcr", "\U0001f600", "a\nb"])
def test_plain_text_is_stored_as_it_is(text: str) -> None:
    assert storable(text)
    assert cleaned(text, 100) == text


@pytest.mark.parametrize("text", ["a\x00b", f"a{chr(0xD800)}b", f"a{chr(0xDFFF)}b"])
def test_what_no_database_holds_is_replaced_and_not_raised(text: str) -> None:
    assert not storable(text)

    kept = cleaned(text, 100)

    assert storable(kept)
    assert kept.startswith("a")
    assert kept.endswith("b")


def test_cleaned_text_is_cut_to_its_column() -> None:
    assert cleaned("x" * 300, 255) == "x" * 255
