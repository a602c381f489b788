"""Which pages are translations of each other: found by what sites declare, by addresses, and proved by content.

Called by the run before it publishes; imports app.core and app.text.
"""
