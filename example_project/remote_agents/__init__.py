"""Agents that are not Django code, and the payment system that they call."""
