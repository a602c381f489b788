"""The process that makes a report for the service."""

import subprocess
import sys

KILLED = """
import os, signal
from plugins.gaps.making import own_process
pool = own_process()
print(pool.submit(os.getpid).result(60), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_process_of_a_report_ends_with_the_service():
    """A service that was stopped while it made a report left the process behind. The output ends when both have ended."""
    killed = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    assert int(killed.stdout)
