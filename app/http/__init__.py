"""What HTTP is, whatever is asked: connections, host and origin checks, API keys, limits, bodies, errors, server-sent events.

Used by `app.routes`, and imports `app.core` only; docs/en/security.md lists the threats that each part counters.
"""
