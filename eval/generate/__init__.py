"""Generates question sets from indexed pages with a language model, and checks each question against its page."""
