"""The suite on MariaDB: the server named by `HITL_TEST_MARIADB_URL`.

Uses PyMySQL, which installs without a compiler; sites will have mysqlclient.
"""

from __future__ import annotations

import os
from typing import Any

import pymysql

from tests.settings.base import *  # noqa: F403  settings are made by layering
from tests.settings.database_url import database_from_url
from tests.workspace import run_database

pymysql.install_as_MySQLdb()

DATABASES: dict[str, dict[str, Any]] = {
    "default": database_from_url(
        os.environ.get("HITL_TEST_MARIADB_URL") or "mysql://root@127.0.0.1:3306/",
        name=run_database(),
    ),
}
DATABASES["default"]["OPTIONS"].setdefault("charset", "utf8mb4")
DATABASES["default"]["TEST"]["CHARSET"] = "utf8mb4"
