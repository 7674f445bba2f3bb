"""How the example site reads `DATABASE_URL`."""

from __future__ import annotations

import pytest

from example_project.database_url import postgresql_from_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://me:se%40cret@db.example:5433/shop?sslmode=require",
            ("shop", "me", "se@cret", "db.example", "5433", {"sslmode": "require"}),
        ),
        ("postgres://me@127.0.0.1", ("postgres", "me", "", "127.0.0.1", "", {})),
        (
            "postgresql://postgres:@/shop?host=/tmp/Folder",
            ("shop", "postgres", "", "/tmp/Folder", "", {}),
        ),
    ],
)
def test_url_names_the_database(url: str, expected: tuple[object, ...]) -> None:
    read = postgresql_from_url(url)

    names = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
    assert tuple(read[name] for name in names) == expected


def test_url_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="DATABASE_URL"):
        postgresql_from_url("mysql://root@localhost/shop")
