"""Where interrupts of agents that are not ours are kept; one module a backing."""
