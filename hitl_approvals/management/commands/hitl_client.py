"""`manage.py hitl_client`: makes, renews, revokes and lists agents that run elsewhere."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from hitl_approvals import services
from hitl_approvals.canonical import printable
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.management.spans import seconds
from hitl_approvals.models import DEFAULT_QUEUE, AgentClient
from hitl_approvals.services import clients


def limits(text: str) -> dict[str, Any]:
    """Read limits, a JSON object.

    Raises:
        ArgumentTypeError: It is none.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ArgumentTypeError(f'{text!r} is no JSON object, such as {{"open": 50}}.')
    return found


class Command(BaseCommand):
    """Prints a token once, alone on its line of stdout; whatever else is said, to stderr."""

    help = (
        "Make, renew, revoke or list agent clients: agents that run elsewhere and ask "
        "for decisions over REST. A token is printed once, alone, and kept nowhere."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="Make a client and print its token.")
        create.add_argument("name")
        create.add_argument(
            "--queue", default=DEFAULT_QUEUE, help="Where its requests wait."
        )
        create.add_argument(
            "--limits",
            type=limits,
            default={},
            metavar="JSON",
            help='What differs from CLIENT_LIMITS, such as {"open": 50}.',
        )
        rotate = verbs.add_parser("rotate", help="Print a new token for a client.")
        rotate.add_argument("name")
        rotate.add_argument(
            "--keep-old-for",
            type=seconds,
            metavar="SECONDS",
            help="Let the token that it has in as well for so long; else it ends now.",
        )
        revoke = verbs.add_parser("revoke", help="Refuse a client, for good.")
        revoke.add_argument("name")
        listed = verbs.add_parser("list", help="List the clients.")
        listed.add_argument(
            "--json", action="store_true", help="One JSON object a line."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(**options)
        except HitlApprovalsError as error:
            raise CommandError(error.detail) from error

    def _create(self, *, name: str, queue: str, limits: Any, **_: Any) -> None:
        client, token = services.create_client(
            name, queue=queue, limits=limits, by=None
        )
        self._show(token, f"Made agent client {_shown(client)}. This is its token:")

    def _rotate(self, *, name: str, keep_old_for: Any, **_: Any) -> None:
        client, token = services.rotate_token(
            _named(name).pk, by=None, keep_old_for=keep_old_for
        )
        until = client.previous_until
        old = (
            "is refused from now on"
            if until is None
            else f"is let in until {_at(until)}"
        )
        self._show(token, f"The token before {old}. This is the new one:")

    def _revoke(self, *, name: str, **_: Any) -> None:
        client = services.revoke_client(_named(name).pk, by=None)
        self._say(f"Agent client {_shown(client)} is revoked.")

    def _list(self, **options: Any) -> None:
        for client in clients.every():
            if options["json"]:
                self.stdout.write(json.dumps(_described(client)))
                continue
            until = (
                f"revoked {_at(client.revoked_at)}" if client.revoked_at else "active"
            )
            token = client.token_hint or "no token"
            line = (_shown(client), str(client.queue_id), token, until)
            self.stdout.write("  ".join(line))

    def _show(self, token: str, what: str) -> None:
        self._say(f"{what} It is shown once.")
        self.stdout.write(token)

    def _say(self, text: str) -> None:
        # Not in the color of errors, which is what stderr has by itself.
        self.stderr.write(text, style_func=str)


def _named(name: str) -> AgentClient:
    client = clients.find(name)
    if client is None:
        raise CommandError(f"There is no agent client {name!r}.")
    return client


def _shown(client: AgentClient) -> str:
    """Return a name in which nothing moves the cursor."""
    return printable(client.name)


def _described(client: AgentClient) -> dict[str, Any]:
    return {
        "id": str(client.pk),
        "name": client.name,
        "queue": client.queue_id,
        "token": client.token_hint or None,
        "limits": client.limits,
        "created_at": _at(client.created_at),
        "previous_until": _at(client.previous_until),
        "revoked_at": _at(client.revoked_at),
    }


def _at(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
