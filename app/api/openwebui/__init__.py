"""Extensions of the OpenAI API for Open WebUI: its tasks, its templates, and events for sources and status."""
