"""Commands of the repository that the Makefile runs; not part of the package."""
