"""`python -m app.cli` is `docs-assistant`."""

import sys

from app.cli import main

sys.exit(main())
