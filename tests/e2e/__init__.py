"""Real processes: a web server, a worker, a broker and a database."""
