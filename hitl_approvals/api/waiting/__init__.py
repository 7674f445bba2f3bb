"""Long polls: `?wait=` on one interrupt and on one turn.

A request that waits costs no connection, no transaction and, on an event loop, no thread
of ours. One thread a process looks at the rows of all that wait, and answers those whose
rows have changed, by the serializers of the plain GET. Nothing here writes a row.
"""
