"""Language models and embedders: open them from settings."""
