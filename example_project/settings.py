"""Settings of the example site, with defaults for a machine that has nothing installed.

The environment may name a PostgreSQL database (`DATABASE_URL`), a broker
(`CELERY_BROKER_URL` or `REDIS_URL`), a folder for local data (`EXAMPLE_DATA`), and what
the support agent is made of (`SHOP_AGENT`, `SHOP_MODEL`).
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from example_project.database_url import postgresql_from_url

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("EXAMPLE_DATA") or BASE_DIR / ".demo")
DATA_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY = "only-for-the-example"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "django_filters",
    "drf_spectacular_sidecar",  # Swagger UI from here, and not from elsewhere
    "hitl_approvals",
    "example_project.shop",
    "example_project.demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
LOGIN_URL = "admin:login"

# --- Database -----------------------------------------------------------------------

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(DATA_DIR / "db.sqlite3"),
        # Web, workers and sweepers write at the same time. Without IMMEDIATE they meet
        # in "database is locked"; without FULL a power cut may forget an approval.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    },
}
if os.environ.get("DATABASE_URL"):
    DATABASES["default"] = postgresql_from_url(os.environ["DATABASE_URL"])

# --- Celery -------------------------------------------------------------------------

CELERY_BROKER_URL = (
    os.environ.get("CELERY_BROKER_URL")
    or os.environ.get("REDIS_URL")
    or "redis://127.0.0.1:6379/0"
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A broker that stops answering must not hold anybody for ever. The prefix keeps two
# sites apart that share one Redis.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 3,
    "socket_timeout": 5,
    "global_keyprefix": os.environ.get("CELERY_KEY_PREFIX") or "example:",
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1

# --- REST and approvals -------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
}

# Short times, so that a worker that was killed is missed within seconds. The defaults
# (60, 10 and 15) suit a site.
HITL_APPROVALS = {"LEASE": 4, "SWEEP": 1, "HINT_AFTER": 3}

# --- The shop -----------------------------------------------------------------------

SHOP_REFUND_LIMIT = Decimal(50)
"""Up to this amount the agent may refund without asking anybody."""
SHOP_OUTBOX = DATA_DIR / "outbox"
"""Where e-mails to customers go instead of to customers."""

SHOP_AGENT_KIND = os.environ.get("SHOP_AGENT") or "function"
"""What the support agent is made of: function, langgraph, pydantic_ai, openai_agents."""
SHOP_MODEL = os.environ.get("SHOP_MODEL") or ""
"""A real model for another framework's agent (`openai:...`); empty for the scripted one."""
if SHOP_AGENT_KIND == "langgraph":
    INSTALLED_APPS.append("hitl_approvals.checkpoints")
