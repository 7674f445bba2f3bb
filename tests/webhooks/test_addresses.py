"""Where a webhook may go: public addresses, and what the site allows beside them."""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Any

import pytest

from hitl_approvals.webhooks import addresses
from hitl_approvals.webhooks.addresses import Refused, resolve

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"]
NOT_PUBLIC = {
    "0.0.0.0": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "192.168.1.1": "private",
    "127.0.0.1": "loopback",
    "127.1.2.3": "loopback",
    "169.254.169.254": "link-local, where clouds keep their secrets",
    "100.64.0.1": "of a carrier's own network",
    "192.0.2.1": "for documentation",
    "192.88.99.1": "a relay of 6to4",
    "198.18.0.1": "for benchmarks",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::8.8.8.8": "IPv4-compatible",
    "::ffff:127.0.0.1": "loopback, written as IPv6",
    "::ffff:10.0.0.1": "private, written as IPv6",
    "::ffff:169.254.169.254": "link-local, written as IPv6",
    "64:ff9b::a00:1": "10.0.0.1 behind NAT64",
    "64:ff9b:1::1": "behind a local NAT64",
    "2001::1": "Teredo",
    "2001:db8::1": "for documentation",
    "2002:a00:1::1": "10.0.0.1 behind 6to4",
    "fc00::1": "unique local",
    "fd12:3456::1": "unique local",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}


class Resolver:
    """Stands for the system's resolver; gives each answer once, the last one for ever."""

    def __init__(self, *answers: list[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [(0, 0, 0, "", (text, port)) for text in answer]


@pytest.fixture
def resolver(monkeypatch):
    def use(*answers):
        made = Resolver(*answers)
        monkeypatch.setattr(addresses, "getaddrinfo", made)
        return made

    return use


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_may_be_called(text, settings, resolver):
    settings.HITL_APPROVALS = {}
    resolver([text])

    assert resolve("hooks.example.org", 443, 1) == [ipaddress.ip_address(text)]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_any_other_address_is_refused_by_its_name(text, settings, resolver):
    settings.HITL_APPROVALS = {}
    resolver([text])

    with pytest.raises(
        Refused, match=r"hooks\.example\.org is .* not a public address"
    ):
        resolve("hooks.example.org", 443, 1)


def test_one_answer_that_is_not_public_spoils_all(settings, resolver):
    settings.HITL_APPROVALS = {}
    resolver(["8.8.8.8", "10.0.0.1"])

    with pytest.raises(Refused, match=r"10\.0\.0\.1"):
        resolve("hooks.example.org", 443, 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f000001", "2130706433"])
def test_loopback_is_refused_however_it_is_spelt(host, settings):
    settings.HITL_APPROVALS = {}

    with pytest.raises(Refused, match="not a public address"):
        resolve(host, 443, 5)


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (["10.1.0.0/16"], "10.1.2.3"),
        (["10.1.2.3"], "10.1.2.3"),
        (["fd12::/16"], "fd12::1"),
        (["192.168.0.0/16", "hooks.Example.org"], "10.9.9.9"),
        (True, "169.254.169.254"),
    ],
)
def test_what_the_site_allows_may_be_called(allowed, text, settings, resolver):
    settings.HITL_APPROVALS = {"WEBHOOK_ALLOW_PRIVATE": allowed}
    resolver([text])

    assert resolve("hooks.example.org", 443, 1) == [ipaddress.ip_address(text)]


@pytest.mark.parametrize(
    "allowed", [[], False, None, "10.0.0.0/8", ["10.1.0.0/16"], ["other.example.org"]]
)
def test_and_nothing_beside_it(allowed, settings, resolver):
    settings.HITL_APPROVALS = {"WEBHOOK_ALLOW_PRIVATE": allowed}
    resolver(["10.2.0.1"])

    with pytest.raises(Refused):
        resolve("hooks.example.org", 443, 1)


def test_a_name_without_an_answer_is_refused(settings, resolver):
    settings.HITL_APPROVALS = {}
    resolver(socket.gaierror(-2, "Name or service not known"))

    with pytest.raises(Refused, match=r"was not resolved: .*not known"):
        resolve("hooks.example.org", 443, 1)


def test_a_name_without_addresses_is_refused(settings, resolver):
    settings.HITL_APPROVALS = {}
    resolver([])

    with pytest.raises(Refused, match="has no address"):
        resolve("hooks.example.org", 443, 1)


def test_a_resolver_that_hangs_is_not_waited_for(settings, monkeypatch):
    settings.HITL_APPROVALS = {}
    hang = threading.Event()
    monkeypatch.setattr(addresses, "getaddrinfo", lambda *_, **__: hang.wait(5))

    with pytest.raises(Refused, match="not resolved in time"):
        resolve("hooks.example.org", 443, 0.05)
    hang.set()
