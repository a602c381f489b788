"""HTML of a document of docutils, without anything of its theme."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.writers import html5_polyglot


class Writer(html5_polyglot.Writer):  # type: ignore[misc]
    """HTML whose blocks of code carry their language."""

    def __init__(self) -> None:
        super().__init__()
        self.translator_class = Translator


class Translator(html5_polyglot.HTMLTranslator):  # type: ignore[misc]
    """See `Writer`."""

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        """A block of code; the language is an attribute, or the class behind `code`."""
        classes = [name for name in node["classes"] if name != "code"]
        self._code(node.astext(), node.get("language") or (classes[0] if classes and "code" in node["classes"] else ""))

    def visit_literal(self, node: nodes.literal) -> None:
        """Code in a line."""
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode

    def visit_doctest_block(self, node: nodes.doctest_block) -> None:
        """A session of Python."""
        self._code(node.astext(), "pycon")

    def _code(self, text: str, language: str) -> Any:
        self.body.append(
            f'<pre><code class="language-{self.attval(language or "none")}">{self.encode(text)}\n</code></pre>\n'
        )
        raise nodes.SkipNode
