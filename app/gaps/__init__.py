"""What the documentation lacks: a report made from the question log, for the people who write the documentation.

`app.cli`, `app.api.admin` and `eval` call it. `making` opens database and index; the others work on what was read. It asks no
language model, and reads the log only, so answers are neither slower nor different.
"""
