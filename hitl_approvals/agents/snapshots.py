"""What an adapter keeps of a paused framework: its state, its versions, what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from packaging.version import InvalidVersion, Version

from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.gate.framework import Asked

REMEDY = (
    "The decisions are kept. Install a version that fits and retry the turn, restart it "
    "(its gated calls ask again), or cancel it."
)


@dataclass(frozen=True, slots=True)
class Maker:
    """Who writes and reads a snapshot."""

    framework: str
    """The kind of agent."""
    distribution: str
    """The framework's distribution, whose version is kept."""
    adapter: int
    """Version of our own format; one more with every change that older code misreads."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A paused framework, as read back."""

    data: Any
    """The framework's own state, or what finds it."""
    calls: tuple[Asked, ...]
    """The gated calls that it waits for, in the model's order."""
    replies: int
    """How many replies of the model it holds."""


def pack(
    maker: Maker, data: Any, *, calls: Sequence[Asked], replies: int
) -> dict[str, Any]:
    """Return the JSON of a paused framework, with the versions that wrote it."""
    return {
        "framework": maker.framework,
        "framework_version": installed(maker.distribution),
        "adapter": maker.adapter,
        "replies": replies,
        "calls": [asdict(call) for call in calls],
        "data": data,
    }


def unpack(maker: Maker, state: Any) -> Snapshot:
    """Read a paused framework.

    A framework reads what its older versions wrote, up to its next major version. What a
    newer version wrote, or another major one, is refused.

    Raises:
        RunDiverged: Something else wrote it; the text says what, and what to do.
    """
    if not isinstance(state, dict) or state.get("framework") != maker.framework:
        raise RunDiverged(f"This turn was not paused by {maker.framework}. {REMEDY}")
    if state.get("adapter") != maker.adapter:
        raise RunDiverged(
            f"This turn was paused by version {state.get('adapter')!r} of the adapter for "
            f"{maker.framework}; this is version {maker.adapter}. {REMEDY}"
        )
    wrote, reads = str(state.get("framework_version")), installed(maker.distribution)
    if not can_read(reads, wrote):
        raise RunDiverged(
            f"This turn was paused by {maker.distribution} {wrote}; {reads} is installed "
            f"here. {REMEDY}"
        )
    return Snapshot(
        data=state["data"],
        calls=tuple(Asked(**call) for call in state["calls"]),
        replies=state["replies"],
    )


@cache
def installed(distribution: str) -> str:
    """Return the version of a distribution; empty where it is none.

    The one that this process found first: what it has loaded stays what it was.
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def can_read(reads: str, wrote: str) -> bool:
    """Tell whether a version may be trusted with what another one wrote."""
    if reads == wrote:
        return True
    try:
        reader, writer = Version(reads), Version(wrote)
    except InvalidVersion:
        return False
    return reader.major == writer.major and reader >= writer
