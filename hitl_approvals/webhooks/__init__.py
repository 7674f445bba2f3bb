"""What the outside is told, where, and how it is sent. Reads and writes no row.

`services` writes what is owed and records what came of it.
"""
