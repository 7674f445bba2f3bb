"""The crash matrix: every failpoint, a process killed or stopped there, and what came of it."""
