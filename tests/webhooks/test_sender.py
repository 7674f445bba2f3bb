"""One attempt at receivers of every kind: what is sent, and what counts as delivered."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from hitl_approvals.webhooks import addresses, sender
from hitl_approvals.webhooks.endpoints import Endpoint
from hitl_approvals.webhooks.retry_after import seconds_until
from hitl_approvals.webhooks.sender import Answer, send, why_not_url
from hitl_approvals.webhooks.signing import why_not_secret
from tests.webhooks import receivers
from tests.webhooks.conftest import OLD_SECRET, SECRET
from tests.webhooks.receivers import free_port, receiving, status
from tests.webhooks.test_addresses import Resolver

BODY = '{"data":{"id":"1"},"type":"interrupt.raised"}'

pytestmark = pytest.mark.usefixtures("allowed")


@pytest.fixture
def named(monkeypatch):
    """Let every name be an address of this machine."""
    monkeypatch.setattr(addresses, "getaddrinfo", Resolver(["127.0.0.1"]))


@pytest.fixture
def trusted(monkeypatch):
    """Let OpenSSL trust the authority of the tests, as a site would its own."""
    monkeypatch.setenv("SSL_CERT_FILE", str(receivers.CA))


def at(port, host="127.0.0.1", scheme="http", **changes):
    url = f"{scheme}://{host}:{port}/hooks"
    return Endpoint(**{"name": "crm", "url": url, "secrets": (SECRET,), **changes})


def test_what_arrives_is_what_was_signed(receiver, endpoint):
    answer = send(endpoint, "id-1", BODY)

    (request,) = receiver.received
    assert answer == Answer(204)
    assert answer.delivered
    assert request.body == BODY.encode()
    assert Webhook(SECRET).verify(request.body, request.headers) == json.loads(BODY)
    assert request.path == "/hooks?site=1"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == "id-1"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_a_changed_body_does_not_verify(receiver, endpoint):
    send(endpoint, "id-1", BODY)

    (request,) = receiver.received
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body.replace(b"1", b"2"), request.headers)


def test_while_a_secret_is_replaced_both_verify(receiver):
    both = at(receiver.port, secrets=(SECRET, OLD_SECRET))
    send(both, "id-1", BODY)

    (request,) = receiver.received
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, OLD_SECRET):
        assert Webhook(secret).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET[:-4] + "AAA=").verify(request.body, request.headers)


def test_no_secret_is_shown_by_the_endpoint():
    shown = repr(at(1, secrets=(SECRET, OLD_SECRET)))

    assert SECRET not in shown
    assert OLD_SECRET not in shown
    assert "127.0.0.1" not in shown


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_any_two_hundred_is_delivered(receiver, endpoint, code):
    receiver.always = status(code)

    assert send(endpoint, "id-1", BODY) == Answer(code)


@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 429, 500, 503])
def test_everything_else_is_not(receiver, endpoint, code):
    receiver.always = status(code)

    answer = send(endpoint, "id-1", BODY)

    assert not answer.delivered
    assert (answer.status, answer.gone) == (code, code == 410)
    assert str(code) in answer.error


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver, endpoint, code):
    with receiving() as target:
        receiver.always = status(code, Location=target.url)

        answer = send(endpoint, "id-1", BODY)

    assert answer.status == code
    assert "redirects are not followed" in answer.error
    assert target.received == []


def test_nobody_there():
    answer = send(at(free_port()), "id-1", BODY)

    assert answer.status is None
    assert "refused" in answer.error.lower()


def test_a_connection_that_closes_early(receiver, endpoint):
    receiver.always = receivers.close_early

    assert send(endpoint, "id-1", BODY) == Answer(
        error="The connection was closed without an answer."
    )


def test_an_answer_that_is_no_http(receiver, endpoint):
    receiver.always = receivers.garbage

    assert send(endpoint, "id-1", BODY) == Answer(
        error="The answer was no HTTP (BadStatusLine)."
    )


def test_a_drip_does_not_hold_the_sender(receiver, endpoint, allowed):
    allowed(WEBHOOK_TIMEOUT=0.3)
    receiver.always = receivers.drip
    began = time.monotonic()

    answer = send(endpoint, "id-1", BODY)

    assert time.monotonic() - began < 2
    assert answer == Answer(error="There was no answer within 0.3 s.")


def test_a_huge_answer_is_not_read(receiver, endpoint):
    receiver.always = receivers.huge
    began = time.monotonic()

    assert send(endpoint, "id-1", BODY) == Answer(200)
    assert time.monotonic() - began < 2


def test_tls_is_for_the_name_and_not_the_address(named, trusted):
    with receiving(tls=True) as receiver:
        answer = send(at(receiver.port, "hooks.example.test", "https"), "id-1", BODY)

    assert answer == Answer(204)
    assert receiver.received[0].headers["host"] == f"hooks.example.test:{receiver.port}"


def test_a_certificate_of_another_name_is_refused(named, trusted):
    with receiving(tls=True) as receiver:
        answer = send(at(receiver.port, "other.example.test", "https"), "id-1", BODY)

    assert answer.status is None
    assert "The certificate was refused: Hostname mismatch" in answer.error
    assert receiver.received == []


def test_a_certificate_of_nobody_is_refused(named, monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with receiving(tls=True) as receiver:
        answer = send(at(receiver.port, "hooks.example.test", "https"), "id-1", BODY)

    assert "The certificate was refused" in answer.error
    assert receiver.received == []


def test_a_handshake_that_never_ends_does_not_hold_the_sender(
    named, trusted, allowed, receiver
):
    """The receiver speaks no TLS, and waits for a request as we wait for its hello."""
    allowed(WEBHOOK_TIMEOUT=0.3)

    answer = send(at(receiver.port, "hooks.example.test", "https"), "id-1", BODY)

    assert not answer.delivered
    assert answer.status is None


def test_the_connection_goes_to_the_address_that_was_judged(
    receiver, monkeypatch, allowed
):
    """A name that is harmless when it is asked for, and something else right after."""
    allowed(WEBHOOK_ALLOW_PRIVATE=["127.0.0.1"])
    resolver = Resolver(["127.0.0.1"], ["127.0.0.2"])
    monkeypatch.setattr(addresses, "getaddrinfo", resolver)
    connected = []
    real = sender.socket.create_connection

    def create_connection(address, **options):
        connected.append(address)
        return real(address, **options)

    monkeypatch.setattr(sender.socket, "create_connection", create_connection)

    answer = send(at(receiver.port, "rebinding.example.test"), "id-1", BODY)

    assert answer == Answer(204)
    assert resolver.asked == ["rebinding.example.test"]
    assert connected == [("127.0.0.1", receiver.port)]


def test_an_address_that_is_not_public_gets_nothing(receiver, endpoint, allowed):
    allowed(WEBHOOK_ALLOW_PRIVATE=False)

    answer = send(endpoint, "id-1", BODY)

    assert "not a public address" in answer.error
    assert receiver.received == []


def test_a_proxy_in_the_environment_is_not_asked(receiver, endpoint, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")

    assert send(endpoint, "id-1", BODY) == Answer(204)


def test_a_second_address_is_tried_if_the_first_takes_no_connection(
    receiver, monkeypatch
):
    # Only 127.0.0.1 is listened on.
    answers = Resolver(["127.0.0.9", "127.0.0.1"])
    monkeypatch.setattr(
        addresses,
        "_looked_up",
        lambda host, port, _: [
            addresses.ipaddress.ip_address(one[4][0]) for one in answers(host, port)
        ],
    )

    assert send(at(receiver.port, "two.example.test"), "id-1", BODY) == Answer(204)


def test_where_no_time_is_left_to_connect_nothing_is_sent(
    receiver, endpoint, monkeypatch
):
    took = iter([0.0, 99.0])
    monkeypatch.setattr(sender, "monotonic", lambda: next(took, 99.0))

    answer = send(endpoint, "id-1", BODY)

    assert "no time left" in answer.error
    assert receiver.received == []


def test_what_the_settings_have_wrong_is_said_and_not_sent(receiver):
    assert "has no secret" in send(at(receiver.port, secrets=()), "i", BODY).error
    bad = send(at(receiver.port, secrets=("whsec_tooshort",)), "i", BODY).error
    assert "A secret of endpoint crm" in bad
    assert "tooshort" not in bad
    assert "The URL of endpoint crm" in send(at(1, scheme="ftp"), "i", BODY).error
    assert receiver.received == []


def test_without_the_library_it_says_what_to_install(receiver, endpoint, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "standardwebhooks", None)

    assert (
        'pip install "django-hitl-approvals[webhooks]"'
        in send(endpoint, "id-1", BODY).error
    )
    assert receiver.received == []


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "https:///hooks",
        "https://user:password@hooks.example.org/",
        "https://hooks.example.org/#part",
        "https://hooks.example.org/a b",
        "https://hooks.example.org:0/",
        "https://hooks.example.org:99999/",
        "https://höoks.example.org/",
        "https://hooks.example.org/\r\nX-Injected: 1",
        "hooks.example.org",
        "",
        None,
    ],
)
def test_a_url_that_cannot_be_called_is_refused(url, allowed):
    allowed(WEBHOOK_ALLOW_HTTP=False)

    assert why_not_url(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org",
        "https://hooks.example.org:8443/a/b?c=d%20e",
        "https://[2606:4700:4700::1111]/",
    ],
)
def test_a_url_that_can_be_called_passes(url, allowed):
    allowed(WEBHOOK_ALLOW_HTTP=False)

    assert why_not_url(url) is None


@pytest.mark.parametrize(
    "secret",
    [None, "", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", "whsec_" + "A" * 88],
)
def test_a_secret_that_cannot_sign_is_refused_without_being_repeated(secret):
    why = why_not_secret(secret)

    assert why is not None
    assert not secret or secret.removeprefix("whsec_") == "" or secret not in why


def test_a_secret_of_the_right_length_passes():
    assert why_not_secret(SECRET) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        (" 120 ", 120),
        ("0", 0),
        ("9" * 40, 999_999_999_999),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0),
        ("Wed, 99 Oct 2026 07:27:00 GMT", None),
    ],
)
def test_retry_after_is_read_by_the_other_sides_clock(value, seconds):
    date = "Wed, 21 Oct 2026 07:28:00 GMT"

    assert seconds_until(value, date) == seconds


def test_retry_after_without_a_clock_of_the_other_side():
    soon = datetime.now(UTC) + timedelta(seconds=60)

    found = seconds_until(format_datetime(soon, usegmt=True))

    assert found is not None
    assert 50 < found <= 60


def test_what_the_answer_asks_for_is_told(receiver, endpoint):
    receiver.always = status(429, Retry_After="17")

    assert send(endpoint, "id-1", BODY).retry_after == 17
