"""The remote agents of the example, killed and started again at every step."""
