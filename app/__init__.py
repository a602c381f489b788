"""The service: core (what is shared), pipeline (question to answer), api (the OpenAI dialect), cli."""
