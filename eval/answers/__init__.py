"""Measures answers: contestants answer a question set, then a judge and plain measures score the answers."""
