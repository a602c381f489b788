"""Ingestion runs over HTTP: the routes and the processes of the runs."""
