"""The command line: `commands` lists the commands, `main` runs one. It may import every other package."""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from app.core.errors import AssistantError
from app.core.log_message import masked
from docs_assistant.cli.shared import print_error

INTERRUPTED = 128 + signal.SIGINT
GRACE = 2.0
"""Seconds after Ctrl-C in which a command may tidy up. Threads and processes that hang, such as in a model or on a name
server, would keep it from ending for minutes: then it ends without them. The index is as it was at any moment."""

GARBAGE = 500_000
"""Allocated objects between two garbage collections. Nearly all of what a command allocates are the modules that it imports, and
looking for cycles among them took more than a quarter of the CPU of a run without changes."""


class Interrupt:
    """Notices Ctrl-C in a thread, also while the main thread hangs, and ends the program after `GRACE`, or at the second one."""

    def __init__(self) -> None:
        self.received = False
        self._telling = threading.Lock()
        self._told = False
        self._pipe = -1

    def watch(self) -> None:
        """Begin; in the main thread."""
        self._pipe, end = os.pipe()
        os.set_blocking(end, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True, name="interrupt").start()

    def tell(self) -> None:
        """Say in one line that the command was stopped, if that was watched. A further Ctrl-C changes nothing any more."""
        if self._pipe < 0:
            return
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        # who comes second waits: the end of the main thread ends the other in the middle of its line
        with self._telling:
            if self._told:
                return
            self._told = True
            os.write(2, b"\x1b[?25h\n" * os.isatty(2) + b"docs-assistant: stopped by Ctrl-C\n")

    def _watch(self) -> None:
        while signal.SIGINT not in os.read(self._pipe, 64):
            pass
        self.received = True
        timer = threading.Timer(GRACE, self._end)
        timer.daemon = True
        timer.start()
        while signal.SIGINT not in os.read(self._pipe, 64):
            pass
        self._end()

    def _end(self) -> NoReturn:
        with suppress(OSError):  # only Linux lists them; elsewhere, they notice the end of their parent
            for task in Path("/proc/self/task").iterdir():
                for child in (task / "children").read_text().split():
                    os.kill(int(child), signal.SIGKILL)
        self.tell()
        os._exit(INTERRUPTED)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 2 for invalid input, 130 after Ctrl-C, 1 for other errors."""
    interrupt = Interrupt()
    try:
        if argv is None:
            argv = sys.argv[1:]
            gc.set_threshold(GARBAGE)
            atexit.register(gc.freeze)  # the end of the process frees all without looking for cycles
            if argv[:1] != ["serve"]:  # it lets answers in progress finish
                interrupt.watch()
        code = _run(list(argv), interrupt)
        if not interrupt.received:
            return code
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:  # the reader of the output has closed it, like head or less
        sys.stderr.close()
        return 141
    except BaseException:
        if not interrupt.received:
            raise
    interrupt.tell()
    return INTERRUPTED


def _run(argv: list[str], interrupt: Interrupt) -> int:
    import click

    from docs_assistant.cli.commands import explained, with_plugins

    debug = argv[:1] == ["--debug"]  # click takes it out
    try:
        root = with_plugins(argv)
        with root.make_context(root.name, argv) as context:
            code: Any = root.invoke(context)
            if isinstance(code, Coroutine):
                import asyncio

                code = asyncio.run(code)
            return int(code or 0)  # a plugin's command may return None
    except AssistantError as error:
        if debug or interrupt.received:  # what it broke is no error of its own
            raise
        print_error(error)
        return 1
    except click.exceptions.Exit as ended:  # after --help
        return ended.exit_code
    except click.UsageError as error:
        sys.stderr.write(masked(explained(error)))
        return error.exit_code
    except click.ClickException as error:  # of a plugin
        print(f"docs-assistant: {masked(error.format_message())}", file=sys.stderr)
        return error.exit_code
    except click.Abort:
        print("docs-assistant: the input ended at a question.", file=sys.stderr)
        return 1
