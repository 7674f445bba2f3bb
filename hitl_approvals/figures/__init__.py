"""Figures about many rows, at a cost that does not grow with them. Writes nothing.

`report` is what the page of numbers and `/stats/` show, `status` the line about whether
anything is stuck.
"""
