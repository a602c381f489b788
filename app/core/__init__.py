"""Parts that every room shares: types, turn, errors, settings, prompts, filters, versions, and the limits of work (gate, breaker).

Imported by all rooms; imports libraries only.
"""
