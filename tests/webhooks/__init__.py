"""What the outside is told: written with the change, sent to real receivers."""
