"""The line that a command prints after Ctrl-C, also where its two threads notice it at the same time."""

import subprocess
import sys

SCRIPT = """
import os, threading, time
from docs_assistant.cli import Interrupt

is_terminal = os.isatty

def slow(number):  # as on a busy machine, where the other thread gets its turn here
    time.sleep(0.5)
    return is_terminal(number)

os.isatty = slow
interrupt = Interrupt()
interrupt.watch()
threading.Thread(target=interrupt.tell, daemon=True).start()
time.sleep(0.1)
interrupt.tell()
"""


def test_who_comes_second_waits_for_the_line() -> None:
    """Else the main thread ends the program before the other has written anything."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "docs-assistant: stopped by Ctrl-C\n"
