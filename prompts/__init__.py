"""What the language model is told and readers are shown: a folder per language."""
