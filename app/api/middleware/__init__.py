"""The layers before a route: connection limits, host and origin checks, API keys, admission, request log, shutdown.

Used by `app.api.server` and the routes; docs/en/security.md lists the threats that each part counters.
"""
