"""Relevance of passages to questions: judged by a model, checked against people."""
