"""The REST door: translates a request, calls one service, and writes no row itself."""
