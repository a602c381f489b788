"""Runs of ingestion over HTTP: the routes and the processes behind them."""
