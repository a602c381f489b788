"""Stores: open one by its address."""
