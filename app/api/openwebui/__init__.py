"""What Open WebUI sends and shows beyond the OpenAI API."""
