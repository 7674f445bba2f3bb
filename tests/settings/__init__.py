"""One settings module for each database that the suite runs on."""
