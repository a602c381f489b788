"""What a request passes before a route sees it: connections, hosts and origins, keys, admission, the log, the stop.

The threats that each of them counters are in docs/en/security.md.
"""
