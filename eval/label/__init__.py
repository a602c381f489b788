"""Labels the relevance of passages to questions, by a model, and compares the labels with those of people."""
