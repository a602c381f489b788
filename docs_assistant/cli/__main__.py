"""`python -m docs_assistant.cli` runs `docs-assistant`."""

import sys

from docs_assistant.cli import main

sys.exit(main())
