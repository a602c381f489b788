"""What every part of the service shares: types, errors, settings, languages, prompts, models, stores."""
