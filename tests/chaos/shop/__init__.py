"""The site that chaos breaks: one busy agent with every kind of request."""
