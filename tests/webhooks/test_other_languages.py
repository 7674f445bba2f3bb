"""What we sign is verified by others than the library that signed it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
from pathlib import Path

import pytest

from hitl_approvals.webhooks.endpoints import Endpoint
from hitl_approvals.webhooks.sender import send
from tests.node.node import node
from tests.webhooks.conftest import OLD_SECRET, SECRET

# Text of every kind, as a canonical body holds it: pure ASCII.
BODY = json.dumps({"data": {"tool_name": "Überweisung 💶"}, "type": "interrupt.raised"})
VERIFIER = Path(__file__).resolve().parent / "verify.mjs"


@pytest.fixture
def request_(allowed, receiver):
    """A message that arrived, signed with two secrets."""
    endpoint = Endpoint("crm", receiver.url, (SECRET, OLD_SECRET))
    assert send(endpoint, "msg-1", BODY).delivered
    return receiver.received[0]


def test_the_signature_is_what_the_specification_says(request_):
    """By hand: HMAC-SHA256 over id, time and body, with the decoded secret as key."""
    id_, time = (request_.headers[f"webhook-{one}"] for one in ("id", "timestamp"))
    signed = f"{id_}.{time}.".encode() + request_.body
    expected = [
        "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        for secret in (SECRET, OLD_SECRET)
        for key in [base64.b64decode(secret.removeprefix("whsec_"))]
    ]

    assert request_.headers["webhook-signature"].split(" ") == expected


@pytest.mark.node
@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
def test_node_verifies_it_with_either_secret(request_, secret):
    assert by_node(request_, secret) == "genuine"


@pytest.mark.node
def test_node_refuses_what_was_changed(request_):
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    assert by_node(request_, other) == "forged"
    request_.body = request_.body.replace(b"raised", b"decided")
    assert by_node(request_, SECRET) == "forged"


def by_node(request, secret):
    told = {
        "secret": secret,
        "headers": request.headers,
        "body": request.body.decode(),
    }
    return subprocess.run(
        [node(), str(VERIFIER)],
        input=json.dumps(told),
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
    ).stdout
