"""Kinds of agent. Each module performs turns through the one protocol of `base`."""
