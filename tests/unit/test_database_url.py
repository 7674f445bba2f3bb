from __future__ import annotations

import pytest

from tests.settings.database_url import database_from_url


def test_a_url_names_user_password_host_port_and_options():
    database = database_from_url(
        "postgres://me:p%40ss@Db.example:5433/postgres?sslmode=require", name="ours"
    )

    assert database == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "ours",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "Db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
        "TEST": {"NAME": "ours"},
    }


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://postgres:@/postgres?host=/tmp/Folder",
        "postgresql://postgres@%2Ftmp%2FFolder/postgres",
    ],
    ids=["query", "quoted"],
)
def test_the_folder_of_a_unix_socket_is_a_host(url):
    database = database_from_url(url, name="ours")

    assert database["HOST"] == "/tmp/Folder"
    assert database["PORT"] == ""
    assert database["OPTIONS"] == {}


def test_an_address_in_brackets_loses_them():
    assert database_from_url("postgresql://[::1]:5432/x", name="y")["HOST"] == "::1"


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="oracle"):
        database_from_url("oracle://host/x", name="y")
