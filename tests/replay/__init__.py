"""Requests whose answer was lost: the server died after the commit, or before it."""
