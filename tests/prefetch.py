"""Installs and builds what browser tests need and keep outside of the repository: `python -m tests.prefetch`.

Whatever fails, as a registry that doesn't answer, is tried three times.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.end_to_end.oauth2_proxy import program
from tests.frontend.sites import GENERATORS, built, tools

PAUSES = (10, 30)
"""Seconds before the second and the third try."""


def tried(what: str, make: Callable[[Path], object]) -> None:
    """Make it in an empty directory; ends the program with a message if the last try fails."""
    for pause in (*PAUSES, None):
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                make(Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # what pytest.fail raises is no Exception
            print(f"prefetch: {what} failed: {error}", file=sys.stderr, flush=True)
            if pause is None:
                sys.exit(f"prefetch: {what} can't be made, and tests need it.")
            time.sleep(pause)
        else:
            return


if __name__ == "__main__":
    for kind in ("pip", "npm"):
        tried(f"the generators of {kind}", lambda _, kind=kind: tools(kind))  # type: ignore[misc]
    for generator in GENERATORS:
        tried(f"a site of {generator}", partial(built, generator))
    tried("oauth2-proxy", program)
