"""Processes with limits of time and memory, in which pages are parsed: a hostile page fails alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import multiprocessing.util
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import LifoQueue
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from app.core.errors import WorkersUnavailable
from app.core.process import data_bytes, end_with_parent
from ingestion.errors import ConversionError

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SECONDS = 10.0
SECONDS_PER_MB = 10.0
"""The CPU time of a call that belongs to no page, such as parsing a sitemap: it grows with what is given to the process."""

_WALL_CLOCK_FACTOR = 15
"""The limit of elapsed time, as a multiple of the limit of CPU time: other programs may use the CPU meanwhile."""

MEMORY = 1 << 30
"""The limit of what a process takes beside its modules, in bytes: 20 times the need of the largest page of most sites."""

_START = 60.0
"""Seconds after which a process that hasn't started is told of; it is waited for as long as it lives."""

_GARBAGE = 50_000
"""Allocated objects between two garbage collections; most are freed at the end of a call anyway."""

_FORKSERVER = "forkserver"  # Windows has none
_MOST_PROCESSES = 4
_NICE = 5
_PRELOADED = ["ingestion.preloaded"]
_PRELOADED_FOR_MANY = [*_PRELOADED, "ingestion.preloaded_statistics"]
_READY = b"ready"
_OUT_OF_MEMORY = pickle.dumps((False, MemoryError()))  # made now: there is no room for it when it is needed
_TIME_OVER = "SIGPROF"


@dataclass(slots=True)
class Budget:
    """The CPU time in seconds that one page, or one call of another kind, may take of the processes, in all calls together."""

    seconds: float
    advice: str = ""
    spent: float = 0.0

    @property
    def left(self) -> float:
        """The rest; 0 if nothing is left."""
        return max(0.0, self.seconds - self.spent)

    def over(self) -> ConversionError:
        """The error of a page that needs more."""
        return ConversionError(f"takes longer than {self.seconds:.3g} s to be read{self.advice}")


_ADVICE = ": divide the page, leave it out with `exclude`, or raise DOCS_TUNING__PAGE_SECONDS"
_PAGE: ContextVar[Budget | None] = ContextVar("page", default=None)
_EXIT_CODES = threading.Lock()
"""Held to start a process or to read how a process ended: `multiprocessing` reads the exit codes of all processes at each start, each code
can be read once, and of two threads that read it, the second has 255."""

_OVER = 0.05  # seconds: less than that isn't worth a call


def processes() -> int:
    """The number of worker processes. They run at low priority, so that a service on the same machine stays fast."""
    return min(_MOST_PROCESSES, os.cpu_count() or 1)


@dataclass
class Workers:
    """Runs functions of modules on values that can be pickled; use it as `async with`.

    Each process does one call at a time. One that takes too long, needs too much memory or crashes is replaced, and
    only its own call fails. A crash in a process that has done other calls may be their doing, so the call is
    repeated once in a new process. A call within `page` takes of the `page_seconds` of that page, 0 being no limit; any other has
    `seconds`, and more for a large argument.
    """

    seconds: float = SECONDS
    memory: int = MEMORY
    page_seconds: float = 0.0
    _pages: dict[str, Budget] = field(default_factory=dict)
    _idle: LifoQueue[_Worker] = field(default_factory=LifoQueue)  # the last one is warm
    _all: list[_Worker] = field(default_factory=list)
    _warming: list[asyncio.Future[None]] = field(default_factory=list)
    _threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(processes(), thread_name_prefix="convert")
        self._all = [_Worker(self.memory) for _ in range(processes())]
        for worker in self._all:
            self._idle.put_nowait(worker)

    async def __aenter__(self) -> Self:
        """Processes start with the first calls, because a run without changes needs none; with `warm`, at once."""
        _preload(_PRELOADED)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._all:
            worker.end()
        await asyncio.gather(*self._warming, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def warm(self) -> None:
        """Start all processes now, because there will be work for each."""
        _preload(_PRELOADED_FOR_MANY)
        while not self._idle.empty():
            self._warming.append(asyncio.ensure_future(self._warmed(self._idle.get_nowait())))

    async def _warmed(self, worker: _Worker) -> None:
        try:
            with contextlib.suppress(ConversionError, WorkersUnavailable):  # the first call says so
                await asyncio.get_running_loop().run_in_executor(self._threads, worker.start)
        finally:
            self._idle.put_nowait(worker)

    async def run(
        self, work: Callable[Arguments, Result], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Returns or raises what the function does; `ConversionError` when it takes too long or ends the process.

        Raises `WorkersUnavailable` when no process can be started.
        """
        task = pickle.dumps((work, arguments, named))
        budget = _PAGE.get()
        if budget is None:
            budget = Budget(self.seconds + SECONDS_PER_MB * len(task) / 1e6)
        result: Result = await asyncio.get_running_loop().run_in_executor(self._threads, self._called, task, budget)
        return result

    @contextlib.contextmanager
    def page(self, url: str) -> Iterator[None]:
        """Context whose calls are for the page at this address: they share its CPU time, also with earlier contexts."""
        budget = self._pages.setdefault(url, Budget(self.page_seconds, _ADVICE)) if self.page_seconds else None
        before = _PAGE.set(budget)
        try:
            yield
        finally:
            _PAGE.reset(before)

    def allow(self, factor: float) -> None:
        """Let the page of this context take so many times as long: it is a large file."""
        if budget := _PAGE.get():
            budget.seconds = factor * self.page_seconds

    def _called(self, task: bytes, budget: Budget) -> Any:
        """What the next idle process answers; in its thread, so that it needn't wait for the event loop between two calls."""
        worker = self._idle.get()
        try:
            return worker.call(task, budget)
        finally:
            self._idle.put(worker)


def start_early() -> None:
    """Start what workers are forked from, for many pages: a copy of this process, whose modules it needs, if one can be made. It imports
    the rest while this process goes on.
    """
    _preload(_PRELOADED_FOR_MANY)
    if _FORKSERVER not in multiprocessing.get_all_start_methods():
        return
    util: Any = multiprocessing.util
    started = util.spawnv_passfds
    try:
        util.spawnv_passfds = _copied if _may_be_copied() else started
        with _without_interrupts():
            multiprocessing.forkserver.ensure_running()
    finally:
        util.spawnv_passfds = started


def _may_be_copied() -> bool:
    """True if at most the thread that waits for Ctrl-C is beside this one: a copy has no threads, but the locks that they held."""
    names = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    try:
        return names in ([], ["interrupt"]) and len(list(Path("/proc/self/task").iterdir())) == 1 + len(names)
    except OSError:  # not Linux
        return False


def _copied(_python: str, arguments: list[str], descriptors: list[int]) -> int:
    """A process with these descriptors that runs the code at the end of a command line of Python; in place of a new Python."""
    sys.stdout.flush()  # else both would write it
    if process := os.fork():
        return process
    try:
        for before, after in pairwise([2, *sorted(descriptors), os.sysconf("SC_OPEN_MAX")]):
            os.closerange(before + 1, after)
        exec(arguments[-1], {})  # noqa: S102  # of multiprocessing
    except Exception:  # noqa: BLE001  # this copy ends here in any case
        traceback.print_exc()
    finally:
        os._exit(0)


def _preload(modules: list[str]) -> None:
    if _FORKSERVER in multiprocessing.get_all_start_methods():
        multiprocessing.forkserver.set_forkserver_preload(modules)


class _Crashed(Exception):
    """The process ended during a call; the message says how."""


@dataclass
class _Worker:
    """A process, started when it is first needed; all but `end` is called from one thread at a time."""

    memory: int
    _process: BaseProcess | None = None
    _pipe: Connection | None = None
    _calls: int = 0
    _ended: bool = False

    def call(self, task: bytes, budget: Budget) -> Any:
        """Runs the task and returns what it returns. Raises `ConversionError` too."""
        tried_before = self._calls > 0
        try:
            good, result = self._once(task, budget)
        except _Crashed as error:
            if not tried_before:
                raise ConversionError(
                    f"ends the process that converts it ({error}): it is too large or damaged"
                ) from None
            return self.call(task, budget)
        if isinstance(result, MemoryError):
            self._stop()  # the system frees its memory
            if tried_before:
                return self.call(task, budget)
            raise ConversionError(f"needs more than {self.memory // 2**20:,} MB of memory to be converted")
        if good:
            return result
        raise result

    def end(self) -> None:
        self._ended = True
        with contextlib.suppress(AttributeError, ValueError):  # not started, or already closed
            self._process.kill()  # type: ignore[union-attr]

    def _once(self, task: bytes, budget: Budget) -> tuple[bool, Any]:
        if (seconds := budget.left) < _OVER:
            raise budget.over()
        pipe = self.start()
        self._calls += 1
        try:
            pipe.send_bytes(pickle.dumps(seconds))
            pipe.send_bytes(task)
            if pipe.poll(_WALL_CLOCK_FACTOR * seconds):
                budget.spent += pickle.loads(pipe.recv_bytes())  # noqa: S301  # of our own process
                result: tuple[bool, Any] = pickle.loads(pipe.recv_bytes())  # noqa: S301
                return result
        except (EOFError, OSError):
            ended = self._stop(wait=1)
            if ended != _TIME_OVER:
                raise _Crashed(ended) from None
        self._stop()
        budget.spent = budget.seconds
        raise budget.over()

    def start(self) -> Connection:
        return self._pipe or self._started()

    def _started(self) -> Connection:
        names = multiprocessing.get_all_start_methods()
        # never a plain fork: the threads of the store don't survive it
        context: Any = multiprocessing.get_context(_FORKSERVER if _FORKSERVER in names else "spawn")
        if self._ended:
            raise ConversionError("isn't converted: the run is over")
        ours: Connection
        theirs: Connection
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.memory), daemon=True)
        self._process, self._pipe, self._calls = process, ours, 0
        try:
            with _without_interrupts(), _EXIT_CODES:
                process.start()
            theirs.close()
            if self._ended:  # meanwhile
                process.kill()
            while not ours.poll(_START):
                log.warning("a process that converts pages isn't started after %.0f s: is the machine busy?", _START)
            ours.recv_bytes()
        except OSError as error:
            self._stop()
            raise WorkersUnavailable(f"No process can be started that converts pages: {error}") from error
        except (EOFError, RuntimeError) as error:
            raise WorkersUnavailable(
                f"No process can be started that converts pages ({self._stop(wait=1)}). A program of your own that "
                "indexes must begin with `if __name__ == '__main__':`."
            ) from error
        return ours

    def _stop(self, wait: float = 0.0) -> str:
        """Kill the process, after waiting for `wait` seconds, and return how it ended."""
        process, pipe, self._process, self._pipe, self._calls = self._process, self._pipe, None, None, 0
        if pipe is not None:
            pipe.close()
        if process is None or process.pid is None:
            return "not started"
        wait_for([process.sentinel], wait)
        with _EXIT_CODES:
            ended = process.exitcode
        process.kill()
        wait_for([process.sentinel])
        with _EXIT_CODES:
            process.join()
            process.close()
        return signal.Signals(-ended).name if ended is not None and ended < 0 else f"exit code {ended}"


def _serve(pipe: Connection, memory: int) -> None:
    """The work of a process: one call after the other until the other end is closed."""
    _limit(memory)
    sys.stdout = sys.stderr  # a splitter from outside may print, and the output is the report
    gc.freeze()  # imported modules stay, so the garbage collector can ignore them
    gc.set_threshold(_GARBAGE)
    gc.enable()
    pipe.send_bytes(_READY)
    while True:
        try:
            seconds = pickle.loads(pipe.recv_bytes())  # noqa: S301  # of our own process
            task = pipe.recv_bytes()
        except EOFError:
            return
        began = time.process_time()
        _end_after(seconds)
        answer = _answer(task)
        _end_after(0)
        pipe.send_bytes(pickle.dumps(time.process_time() - began))
        pipe.send_bytes(answer)
        del task, answer


def _end_after(seconds: float) -> None:
    """Have the system end this process when it has computed so long, whatever it does then; 0 is never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _answer(task: bytes) -> bytes:
    try:
        work, arguments, named = pickle.loads(task)  # noqa: S301  # of our own process
        answer = True, work(*arguments, **named)
        return pickle.dumps(answer)
    except MemoryError:
        return _OUT_OF_MEMORY
    except Exception as error:  # noqa: BLE001  # whatever it is, it is of this call alone
        return _pickled_error(error)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start a process without Ctrl-C, which is for the program: it would print a traceback from the middle of an import."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    multiprocessing.resource_tracker.ensure_running()  # else it would be started meanwhile, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of this thread; the new process inherits it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pickled_error(error: Exception) -> bytes:
    try:
        pickled = pickle.dumps((False, error))
        pickle.loads(pickled)  # noqa: S301  # an error with other arguments than its own can't be made again
    except Exception:  # noqa: BLE001
        pickled = pickle.dumps((False, ConversionError(f"can't be converted ({type(error).__name__}: {error})")))
    return pickled


def _limit(memory: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that then ends this one
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # not on every system
        import resource

        os.nice(_NICE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = data_bytes() + memory
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    end_with_parent()
