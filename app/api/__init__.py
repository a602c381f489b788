"""The wire: the OpenAI dialect over HTTP. No prompt and no search in here."""
