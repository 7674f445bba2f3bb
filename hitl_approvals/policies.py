"""Whether a tool call needs a person. Decides nothing about who that person may be.

A policy answers exactly `False` or `[]` (free), or `True` or a list of tags (gated).
Everything else, a forgotten `return` and an exception included, gates the call and says so.
"""

from __future__ import annotations

import inspect
import reprlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hitl_approvals.canonical import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hitl_approvals.types import CallInfo

Answer: TypeAlias = bool | list[str]
"""What a policy may return."""


class Policy(Protocol):
    """Anything that can be asked about one call."""

    def __call__(self, call: CallInfo, /) -> Answer:
        """Return whether the call is gated, or the tags that say why it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a policy, made safe; it is frozen on the row."""

    gated: bool
    tags: tuple[str, ...] = ()
    why: str = ""
    """One sentence for the reviewer."""
    broken: bool = False
    """The policy gave no answer; the call is gated for that reason."""


class Rule:
    """A policy built by this module; call it like any other."""

    def __init__(
        self,
        verdict: Callable[[CallInfo], Verdict],
        *,
        name: str,
        tools: Iterable[str] = (),
    ) -> None:
        self._verdict = verdict
        self.name = name
        self.tools = frozenset(tools)
        """The tools it names, so that a misspelt one can be found at start-up."""

    def __call__(self, call: CallInfo, /) -> Answer:
        """Return the answer without its sentence."""
        verdict = self._verdict(call)
        return list(verdict.tags) or True if verdict.gated else False

    def __repr__(self) -> str:
        return self.name

    def verdict(self, call: CallInfo) -> Verdict:
        """Return the answer with its sentence."""
        return self._verdict(call)


def gate_only(tools: Iterable[object], tags: Iterable[str] = ()) -> Rule:
    """Gate the listed tools and leave every other tool free.

    Raises:
        TypeError: If the list is one string, or holds what is neither name nor tool.
    """
    names, labels = _tool_names(tools), _labels(tags)

    def verdict(call: CallInfo) -> Verdict:
        if call.tool_name in names:
            why = f"{call.tool_name} is on the list of gated tools"
            return Verdict(gated=True, tags=labels, why=_sentence(why))
        why = f"{call.tool_name} is not on the list of gated tools"
        return Verdict(gated=False, why=_sentence(why))

    return Rule(verdict, name="gate_only", tools=names)


def gate_all_except(tools: Iterable[object], tags: Iterable[str] = ()) -> Rule:
    """Gate every tool but the listed ones.

    Raises:
        TypeError: If the list is one string, or holds what is neither name nor tool.
    """
    names, labels = _tool_names(tools), _labels(tags)

    def verdict(call: CallInfo) -> Verdict:
        if call.tool_name in names:
            why = f"{call.tool_name} is on the list of free tools"
            return Verdict(gated=False, why=_sentence(why))
        why = f"{call.tool_name} is not on the list of free tools"
        return Verdict(gated=True, tags=labels, why=_sentence(why))

    return Rule(verdict, name="gate_all_except", tools=names)


# The words of other approval libraries, kept for those who bring them. They read
# backwards to many people, so the docs use the two names above.
allowlist = gate_only
denylist = gate_all_except


def predicate(function: Policy, tags: Iterable[str] = ()) -> Rule:
    """Ask a function; the tags are added to those that it returns itself."""
    labels = _labels(tags)

    def verdict(call: CallInfo) -> Verdict:
        answer = evaluate_policy(function, call)
        if not answer.gated:
            return answer
        return replace(answer, tags=_merge(answer.tags, labels))

    return Rule(verdict, name=_name(function), tools=_tools_of([function]))


def always(tags: Iterable[str] = ()) -> Rule:
    """Gate every call."""
    verdict = Verdict(gated=True, tags=_labels(tags), why="Every call is gated.")
    return Rule(lambda _: verdict, name="always")


def never() -> Rule:
    """Leave every call free."""
    verdict = Verdict(gated=False, why="No call is gated.")
    return Rule(lambda _: verdict, name="never")


def any_of(*policies: Policy | bool) -> Rule:
    """Gate what at least one policy gates, with the tags of all that do.

    Raises:
        TypeError: If no policy is given.
    """
    if not policies:
        raise TypeError("any_of() needs at least one policy; got none.")

    def verdict(call: CallInfo) -> Verdict:
        answers = [evaluate_policy(policy, call) for policy in policies]
        return _joined([answer for answer in answers if answer.gated] or answers)

    return Rule(verdict, name="any_of", tools=_tools_of(policies))


def all_of(*policies: Policy | bool) -> Rule:
    """Gate what every policy gates; one that gives no answer gates the call alone.

    Raises:
        TypeError: If no policy is given.
    """
    if not policies:
        raise TypeError("all_of() needs at least one policy; got none.")

    def verdict(call: CallInfo) -> Verdict:
        answers = [evaluate_policy(policy, call) for policy in policies]
        # A policy that broke must not be outvoted: nobody would ever see that it broke.
        broken = [answer for answer in answers if answer.broken]
        free = [answer for answer in answers if not answer.gated]
        return _joined(broken or free or answers)

    return Rule(verdict, name="all_of", tools=_tools_of(policies))


def evaluate_policy(policy: object, call: CallInfo) -> Verdict:
    """Return what a policy says about a call; never raise, gate on anything odd.

    A policy is a boolean or something callable. Only the exceptions that end a process
    (`SystemExit`, `KeyboardInterrupt`) pass through.
    """
    try:
        if policy is True:
            return Verdict(gated=True, why="Every call of this tool is gated.")
        if policy is False:
            return Verdict(gated=False, why="No call of this tool is gated.")
        if isinstance(policy, Rule):
            return policy.verdict(call)
        name = _name(policy)
        if not callable(policy):
            return _broken(f"The policy is {_shown(policy)}, which cannot be asked")
        return _read(name, policy(call))
    except Exception as error:  # noqa: BLE001 - the site's own code; a failure is an answer
        return _broken(f"The policy raised {type(error).__name__}: {_text(error)}")


def _read(name: str, answer: object) -> Verdict:
    if answer is False or (type(answer) is list and not answer):
        return Verdict(gated=False, why=_sentence(f"{name} returned {answer}"))
    if answer is True:
        return Verdict(gated=True, why=_sentence(f"{name} returned True"))
    if type(answer) is list and all(
        isinstance(tag, str) and tag.strip() for tag in answer
    ):
        tags = _merge(answer)
        why = f"{name} returned the tags {', '.join(tags)}"
        return Verdict(gated=True, tags=tags, why=_sentence(why))
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
        return _broken(f"{name} is async, and a policy must answer at once")
    return _broken(f"{name} returned {_shown(answer)}, which is not an answer")


def _broken(why: str) -> Verdict:
    return Verdict(gated=True, why=_sentence(why), broken=True)


def _joined(answers: list[Verdict]) -> Verdict:
    return Verdict(
        gated=answers[0].gated,
        tags=_merge(*(answer.tags for answer in answers)),
        why=" ".join(answer.why for answer in answers),
        broken=any(answer.broken for answer in answers),
    )


def _merge(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str.__str__(tag) for tags in groups for tag in tags))


def _labels(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise TypeError(f'Tags must be a list of texts; got the text "{tags}".')
    return _merge(tags)


def _tool_names(tools: Iterable[object]) -> frozenset[str]:
    expected = "A list of tools must hold tool names or tools"
    if isinstance(tools, str):
        raise TypeError(f'{expected}; got the text "{tools}".')
    names = set()
    for tool in tools:
        name = tool if isinstance(tool, str) else getattr(tool, "name", None)
        if not isinstance(name, str) or not name:
            raise TypeError(f"{expected}; got {_shown(tool)}.")
        names.add(str.__str__(name))
    return frozenset(names)


def _tools_of(policies: Iterable[object]) -> frozenset[str]:
    rules = [policy for policy in policies if isinstance(policy, Rule)]
    return frozenset().union(*(rule.tools for rule in rules))


def _name(policy: Any) -> str:
    name = getattr(policy, "__qualname__", None) or type(policy).__qualname__
    lambda_ = isinstance(name, str) and name.endswith("<lambda>")
    return (
        "The policy" if lambda_ or not isinstance(name, str) else f"The policy {name}"
    )


def _shown(value: object) -> str:
    try:
        return printable(reprlib.repr(value), 80)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not hide the odd answer
        return f"a {type(value).__name__}"


def _text(error: Exception) -> str:
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the exception
        return "no message"


def _sentence(why: str) -> str:
    return printable(why, 300).rstrip(".") + "."
