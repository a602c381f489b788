"""From a question to an answer: one file per step, put in order by assistants.toml."""
