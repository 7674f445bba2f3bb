"""The site that the crash matrix kills: one agent, a tool of every mode."""
