"""Asciidoctor as a program: one process converts many files, because its start costs more than most files."""

import atexit
import json
import os
import selectors
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ingestion.errors import ConversionError

SECONDS, SECONDS_PER_MB = 20.0, 20.0
"""Seconds that a file may take, and those for each MB of it."""

CPU_SECONDS = 3_600
"""The CPU time of a process, which may outlive the one that started it."""

MISSING = (
    "needs Asciidoctor, which isn't installed: install it (apt install asciidoctor, gem install asciidoctor, or npm install -g "
    "asciidoctor), so that `asciidoctor` is on the PATH"
)
_NAMES = ("asciidoctor", "asciidoctorjs")
_KEPT = ("PATH", "HOME", "LANG", "GEM_HOME", "GEM_PATH", "RUBYLIB", "NODE_PATH", "SYSTEMROOT")
"""Variables of the environment that the program gets: the others may be secret."""

_RUBY = """
require 'asciidoctor'
require 'json'
Asciidoctor::LoggerManager.logger = Asciidoctor::NullLogger.new
$stdin.set_encoding 'UTF-8'
$stdin.each_line do |line|
  given = JSON.parse line
  begin
    html = Asciidoctor.convert given['text'], safe: :secure, standalone: false, attributes: given['attributes']
    $stdout.puts JSON.generate({ html: html })
  rescue StandardError => e
    $stdout.puts JSON.generate({ error: e.message })
  end
  $stdout.flush
end
"""
_NODE = """
const { createRequire } = await import('node:module');
const { pathToFileURL } = await import('node:url');
const { createInterface } = await import('node:readline');
const at = createRequire(pathToFileURL(process.argv[1]));
const found = await import(pathToFileURL(at.resolve('@asciidoctor/core')));
const made = found.convert ? found : typeof found.default === 'function' ? found.default() : found.default;
console.warn = console.error = () => {};
for await (const line of createInterface({ input: process.stdin, terminal: false })) {
  const given = JSON.parse(line);
  let answer;
  try {
    const html = await made.convert(given.text, { safe: 'secure', standalone: false, attributes: given.attributes });
    answer = { html: String(html) };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  process.stdout.write(JSON.stringify(answer) + '\\n');
}
"""


def html_of(text: str, attributes: Mapping[str, str]) -> str:
    """The text as HTML. Raises `ConversionError` without Asciidoctor, and for a text that it can't convert in time."""
    global _running  # noqa: PLW0603  # one for all pages of this process
    merged = {"showtitle": "", "relfilesuffix": ".adoc", "icons": "font", **attributes}
    task = json.dumps({"text": text, "attributes": merged}).encode() + b"\n"
    if _running is None or _running.process.poll() is not None:
        _running = Program(_started())
    try:
        answer = json.loads(_running.ask(task))
    except ConversionError:
        _running.end()
        _running = None
        raise
    if "html" not in answer:
        raise ConversionError(f"can't be converted by Asciidoctor: {str(answer.get('error'))[:300]}")
    return str(answer["html"])


@dataclass
class Program:
    """A process that answers each line with one."""

    process: subprocess.Popen[bytes]

    def ask(self, task: bytes) -> bytes:
        """The answer. Raises `ConversionError` when there is none in time."""
        stdin, taken = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert taken is not None
        answer = bytearray()
        seconds = SECONDS + SECONDS_PER_MB * len(task) / 1e6
        try:
            stdin.write(task)
            stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(taken, selectors.EVENT_READ)
                while not answer.endswith(b"\n"):
                    if not ready.select(seconds):
                        raise ConversionError(f"takes Asciidoctor longer than {seconds:.0f} s")
                    if not (part := os.read(taken.fileno(), 1 << 16)):
                        raise ConversionError(f"ends Asciidoctor (exit code {self.process.wait(1)})")
                    answer += part
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConversionError(f"can't be converted by Asciidoctor ({error})") from error
        return bytes(answer)

    def end(self) -> None:
        """Kill the process."""
        with suppress(OSError):
            self.process.kill()
        with suppress(OSError), self.process:
            pass


_running: Program | None = None


@atexit.register
def _end() -> None:
    if _running is not None:
        _running.end()


def _started() -> subprocess.Popen[bytes]:
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise ConversionError(MISSING)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = subprocess.Popen(  # noqa: S603  # a program of the operator's PATH
            _command(Path(program).resolve()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
        )
    except OSError as error:
        raise ConversionError(f"needs Asciidoctor, which can't be started ({error})") from error
    with suppress(ImportError, AttributeError, OSError, ValueError):  # not on every system
        import resource

        resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    return process


def _command(program: Path) -> list[str]:
    """Starts the program's library: its command line takes one file, or writes files."""
    with program.open("rb") as file:
        is_node = b"node" in file.readline(200)
    if is_node:
        return ["node", "--input-type=module", "-e", _NODE, str(program)]
    return ["ruby", "-EUTF-8", "-e", _RUBY]
