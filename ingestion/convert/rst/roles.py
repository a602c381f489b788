"""Roles of Sphinx, and any other: the text that readers see, as code or as a link where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from docutils import nodes
from docutils.utils import unescape

from ingestion.convert.rst.env import Env, env_of
from ingestion.convert.rst.files import with_target

Role = Callable[..., tuple[list[nodes.Node], list[nodes.Node]]]

_PLAIN = frozenset({"term", "guilabel", "abbr", "any", "eq", "index", "dfn", "numref", "menuselection", "sub-ref"})
_CALLED = frozenset({"func", "meth", "method", "function"})
_CODE = frozenset(
    {"class", "attr", "mod", "module", "data", "exc", "obj", "const", "type", "file", "command", "option", "envvar"}
    | {"program", "kbd", "samp", "keyword", "token", "makevar", "manpage", "mimetype", "newsgroup", "regexp", "confval"}
    | {
        "macro",
        "member",
        "struct",
        "enum",
        "enumerator",
        "union",
        "var",
        "expr",
        "property",
        "prop",
        "decorator",
        "deco",
    }
    | {"download", "setting", "opcode", "cmdoption", "source", "src", "cfunc", "texpr", "concept", "dir", "rst", "role"}
)
_UNSEEN = frozenset({"raw", "index-entry"})


def role_named(original: Callable[..., Any], default: str = "") -> Callable[..., Any]:
    """The look-up of roles: docutils' own and the document's first, then those here, which know every name."""

    def lookup(name: str, language: Any, line: int, reporter: Any) -> tuple[Role, list[Any]]:
        short = name.lower().rpartition(":")[2]
        if short in _UNSEEN:
            return _nothing, []
        if not name and default:
            return lambda _, *rest, **more: _shown(default, *rest, **more), []
        found, _ = original(name, language, line, reporter)
        return found or _shown, []

    return lookup


def _nothing(*_: Any, **__: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    return [], []


_nothing.options = {"format": str}  # type: ignore[attr-defined]  # of a role that is derived from it


def _shown(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The role's text, or its title where it has one."""
    env = env_of(inliner.document)
    given = unescape(text)
    title, target = with_target(given)
    short = name.lower().rpartition(":")[2]
    made = _linked(short, title, target.strip(), env) or _extlink(short, title, target, env)
    if made is None:
        made = _as_text(name, short, title, given)
    made.source, made.line = rawtext, lineno
    return [made], []


def _linked(short: str, title: str, target: str, env: Env) -> nodes.Node | None:
    """A link to another page or section of the directory; its title where the text gives none."""
    if short == "doc":
        page = env.files.page(target)
        shown = title or env.files.title(env.files.titles.pages.get(page, "")) or target.strip("/").rpartition("/")[2]
        return _reference(shown, env.files.link(page)) if page else nodes.inline("", shown)
    if short not in ("ref", "numref"):
        return None
    file, anchor, of_section = env.files.titles.labels.get(" ".join(target.lower().split()), ("", "", ""))
    of_section = env.files.title(of_section)
    shown = title.replace("%s", "").replace("{name}", of_section).replace("{number}", "").strip()
    shown = shown or of_section or target.lstrip("~!")
    return _reference(shown, f"{env.files.link(file)}#{anchor}") if file else nodes.inline("", shown)


def _extlink(short: str, title: str, target: str, env: Env) -> nodes.Node | None:
    """`extlinks` of conf.py: a role that writes an address."""
    known = env.files.conf.get("extlinks")
    entry = known.get(short) if isinstance(known, Mapping) else None
    if not isinstance(entry, Sequence) or isinstance(entry, str) or not entry or not isinstance(entry[0], str):
        return None
    caption = entry[1] if len(entry) > 1 and isinstance(entry[1], str) else ""
    shown = title or (caption.replace("%s", target) if "%s" in caption else caption + target)
    return _reference(shown, entry[0].replace("%s", target))


def _reference(text: str, address: str) -> nodes.reference:
    return nodes.reference("", text, refuri=address)


def _as_text(name: str, short: str, title: str, given: str) -> nodes.Node:
    shown = title or given
    if short == "menuselection":
        return nodes.inline("", shown.replace("-->", "\N{TRIANGULAR BULLET}").replace("&", ""))
    if short == "guilabel":
        return nodes.strong("", shown.replace("&", ""))
    if short in _PLAIN:
        return nodes.inline("", given if short == "abbr" else shown)
    if short == "samp":
        return nodes.literal("", shown.replace("{", "").replace("}", ""))
    if short in _CALLED | _CODE or ":" in name or short.startswith("code"):
        shown = shown.lstrip("!")
        if shown.startswith("~") and not title:
            shown = shown.lstrip("~").rpartition(".")[2]
        called = short in _CALLED and not title and not shown.endswith(")")
        return nodes.literal("", shown.lstrip("~") + ("()" if called else ""))
    return nodes.inline("", shown)
