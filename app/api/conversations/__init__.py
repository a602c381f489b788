"""Conversations and feedback: the routes below /v1/conversations and /v1/answers, and what keeps the answers of the others."""
