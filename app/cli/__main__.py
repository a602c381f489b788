"""`python -m app.cli` runs `docs-assistant`."""

import sys

from app.cli import main

sys.exit(main())
