"""A CommonMark parser that notes where each link, picture, tag, code span and entity of a line stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

Kind = Literal["backticks", "escape", "link", "image", "autolink", "html_inline", "entity"]
_SIGNS: dict[Kind, str] = {
    "backticks": "`", "escape": "\\", "link": "[", "image": "![", "autolink": "<", "html_inline": "<", "entity": "&",
}  # fmt: skip
_ESCAPE = re.compile(r"\\[!-/:-@\[-`{-~]")


class Span(NamedTuple):
    """An inline element. A link or image has its words at `inner`; `target` is its address as the parser decodes it."""

    kind: Kind
    start: int
    end: int
    inner: tuple[int, int] = (0, 0)
    target: str = ""
    title: str = ""


def parser_with_spans() -> MarkdownIt:
    """A parser whose inline tokens have their `Span`s under `meta["spans"]`."""
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "reference"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005  # other clients accept what this one refuses
    parser.normalizeLink = str  # type: ignore[method-assign,assignment]
    helpers = parser.helpers

    def label(state: StateInline, start: int, disableNested: bool = False) -> int:  # noqa: N803
        end: int = helpers.parseLinkLabel(state, start, disableNested)
        state.env.setdefault("labels", {})[start] = end
        return end

    parser.helpers = SimpleNamespace(  # type: ignore[assignment]
        parseLinkLabel=label,
        parseLinkDestination=helpers.parseLinkDestination,
        parseLinkTitle=helpers.parseLinkTitle,
    )
    rules = dict(zip(parser.get_active_rules()["inline"], parser.inline.ruler.getRules(""), strict=True))
    for kind in _SIGNS:
        parser.inline.ruler.at(kind, _noted(kind, rules[kind]))
    parser.core.ruler.at("inline", _inlines)
    return parser


def _inlines(state: Any) -> None:
    """Parses inline tokens and notes their spans."""
    for token in state.tokens:
        if token.type == "inline":
            state.env["spans"], state.env["labels"] = [], {}
            state.md.inline.parse(token.content, state.md, state.env, token.children)
            token.meta["spans"] = state.env["spans"]


def _noted(kind: Kind, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    sign = _SIGNS[kind]

    def noted(state: StateInline, silent: bool) -> bool:
        if not state.src.startswith(sign, state.pos):
            return False
        start, count = state.pos, len(state.tokens)
        spans, labels = state.env["spans"], state.env["labels"]
        if kind == "image":  # the parser reads its words as a source of their own
            state.env["spans"], state.env["labels"] = [], dict(labels)
        matched = rule(state, silent)
        if kind == "image":
            labels = state.env["labels"] if not (matched and not silent) else labels
            state.env["spans"] = spans
        if matched and not silent:
            tokens = state.tokens[count:]
            if _is_one(kind, state.src, start, tokens):
                spans.append(_span(kind, start, state, tokens))
        state.env["labels"] = labels
        return matched

    return noted


def _is_one(kind: Kind, text: str, start: int, tokens: list[Token]) -> bool:
    """Whether the rule found its element, and didn't just skip signs."""
    if kind == "escape":
        return bool(_ESCAPE.match(text, start))
    return kind != "backticks" or bool(tokens and tokens[-1].type == "code_inline")


def _span(kind: Kind, start: int, state: StateInline, tokens: list[Token]) -> Span:
    if kind == "link":
        opened = next(token for token in tokens if token.type == "link_open")
        inner = (start + 1, state.env["labels"][start])
        return Span(kind, start, state.pos, inner, str(opened.attrs["href"]), str(opened.attrs.get("title", "")))
    if kind == "image":
        made = tokens[-1]
        inner = (start + 2, start + 2 + len(made.content))
        return Span(kind, start, state.pos, inner, str(made.attrs["src"]), str(made.attrs.get("title", "")))
    return Span(kind, start, state.pos)
