"""Question sets made from one's own pages by a language model, each question checked against its page."""
