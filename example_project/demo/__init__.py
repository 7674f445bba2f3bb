"""`manage.py demo`: the whole site on this machine, for people and for the check."""
