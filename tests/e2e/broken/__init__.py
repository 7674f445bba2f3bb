"""An app that breaks what `manage.py demo --check` counts, to see that it counts."""
