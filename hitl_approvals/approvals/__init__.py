"""The framework-neutral gate: approval of tool calls in anybody's agent, without rows.

Importable without settings. The agents of this package have a gate of their own, with a
ledger; this one is for agents that are not ours.
"""
