"""Finds the servers that the tests need, or starts them. Runs no test.

Every kind looks in the same order: what the environment names, then the standard local
address, then a server that is installed with the test dependencies and stopped at the
end. A server that is named and does not answer is never replaced by another one.
"""
