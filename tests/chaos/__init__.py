"""Chaos: many turns, many processes and servers, and everything killed by chance."""
