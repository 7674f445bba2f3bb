"""The command of this app."""
