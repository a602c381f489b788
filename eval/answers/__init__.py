"""Answers measured: contestants answer a set, then judges and plain measures say how well."""
