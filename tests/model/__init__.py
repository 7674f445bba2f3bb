"""Exhaustive checks of the protocol: every order of every move, in small worlds.

The models stand beside the code, not on it: they share its words, its transition tables
and the names of its failpoints, and nothing else. `python -m tests.model` runs them in
full; the tests here run them in worlds that are small enough for every day.
"""

from __future__ import annotations
