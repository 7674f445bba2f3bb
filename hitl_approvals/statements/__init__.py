"""Statements that are compiled once and executed with other values each time.

Django builds and compiles every query anew, which is most of what a small one costs.
One decided call takes 27 of them, always the same. `where(...)` and `insert(...)` say
what `filter(...)` and `bulk_create(...)` say; Django compiles the first statement of a
shape with a `Slot` in each value's place, and the text is kept for as long as the
connection. There is no SQL of our own here: what runs is what Django made.
"""

from __future__ import annotations

from hitl_approvals.statements.inserting import insert
from hitl_approvals.statements.shapes import Condition, There
from hitl_approvals.statements.slots import Slot
from hitl_approvals.statements.tables import Where, ask, where

__all__ = ["Condition", "Slot", "There", "Where", "ask", "insert", "where"]
