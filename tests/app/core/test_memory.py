"""The memory of a process, also where the system doesn't tell it."""

import subprocess
import sys

from app.core.process import peak_mb


def test_a_system_without_rusage_starts_and_reports_no_memory() -> None:
    """Windows has no module `resource`."""
    code = (
        "import sys; sys.modules['resource'] = None; from app.core.process import peak_mb;"
        " from app.api.middleware.connections import descriptors; print(peak_mb(), descriptors(100))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "100"]
    assert peak_mb() > 10
