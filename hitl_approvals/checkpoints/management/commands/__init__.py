"""`hitl_checkpoints`."""
