"""Which addresses a webhook may be sent to. The only place that resolves names.

A name is resolved once an attempt, every answer is judged, and the connection goes to an
address that was judged: an answer that changes in between changes nothing.
"""

from __future__ import annotations

import ipaddress
import threading
from ipaddress import IPv4Address, IPv6Address
from socket import SOCK_STREAM, getaddrinfo
from typing import Any, TypeAlias

from hitl_approvals.conf import hitl_settings

Address: TypeAlias = IPv4Address | IPv6Address

CARRIERS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "::/96",  # IPv4-compatible
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64 of one network
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "192.88.99.0/24",  # relays of 6to4
        "fec0::/10",  # site-local
    )
)
"""Networks that lead into others, or that no registry gives out, though Python calls
some of them global."""


class Refused(Exception):
    """The address must not be called; the text says why, in one sentence."""


def resolve(host: str, port: int, seconds: float) -> list[Address]:
    """Return the addresses of a host, if all of them may be called.

    Args:
        host: A name, or an address as text.
        port: Where the connection will go.
        seconds: How long the answer may take.

    Raises:
        Refused: One of them may not be called, or there is none.
    """
    found = _looked_up(host, port, seconds)
    if hosts_allowed(host):
        return found
    for address in found:
        if not may_be_called(address):
            raise Refused(
                f"{host} is {address}, which is not a public address; "
                "WEBHOOK_ALLOW_PRIVATE could allow it."
            )
    return found


def may_be_called(address: Address) -> bool:
    """Tell whether an address is public, or of a network that the site allows."""
    if is_public(address):
        return True
    return any(
        address.version == network.version and address in network
        for network in networks_allowed()
    )


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the internet's, whichever way it is written."""
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if inner is not None:
        return is_public(inner)
    if any(address.version == one.version and address in one for one in CARRIERS):
        return False
    return address.is_global and not address.is_multicast


def hosts_allowed(host: str) -> bool:
    """Tell whether the site allows a host whatever its addresses are."""
    allowed = hitl_settings.webhook_allow_private
    if isinstance(allowed, (list, tuple, set, frozenset)):
        return host.lower() in {str(one).lower() for one in allowed}
    return allowed is True


def networks_allowed() -> list[Any]:
    """Return the networks that the site allows though they are not public."""
    allowed = hitl_settings.webhook_allow_private
    if not isinstance(allowed, (list, tuple, set, frozenset)):
        return []
    return [network for one in allowed if (network := network_of(str(one)))]


def network_of(text: str) -> Any:
    """Return the network that a text names, or None: then it is a host's name."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _looked_up(host: str, port: int, seconds: float) -> list[Address]:
    """Ask the resolver in a thread of its own: it has no time limit that we could set.

    Raises:
        Refused: There is no answer, or none in time.
    """
    found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(getaddrinfo(host, port, type=SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    thread = threading.Thread(target=look_up, name="hitl-resolve", daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise Refused(f"The name {host} was not resolved in time.")
    if isinstance(found[0], Exception):
        raise Refused(f"The name {host} was not resolved: {found[0]}.")
    # A scope such as %eth0 belongs to link-local addresses, which are judged without it.
    texts = dict.fromkeys(one[4][0].partition("%")[0] for one in found[0])
    addresses = [ipaddress.ip_address(text) for text in texts]
    if not addresses:
        raise Refused(f"The name {host} has no address.")
    return addresses
