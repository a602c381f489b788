"""Patterns of Markdown in a streamed text: for what is complete, and for what could become complete."""

from __future__ import annotations

import re

_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
WORDS = re.compile(
    rf"( {{0,3}})({_MARKER} {{1,3}}|#{{1,6}} )?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?=[^\W_]|[^\x00-\x7f\s【]|`{{1,2}}[^`])(?!\d{{1,9}}(?:[.)]|\Z))"
)
WORDS_UNSURE = re.compile(
    rf" {{0,3}}(?:{_MARKER}? {{0,3}}|\d{{1,9}}|#{{1,6}} ?)?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?:\d{{1,9}}|`{{1,2}})?\Z"
)
ITEM = re.compile(rf"({_MARKER}) ")
BLANK = re.compile(r"[ \t]*\n")
FENCE = re.compile(r"(`{3,20})[^`\n|]{0,100}\n|(~{3,20})(?!~)[^\n|]{0,100}\n")  # with a bar, some clients read a table
FENCE_UNSURE = re.compile(r"(?:`{1,20}(?:(?<=```)[^`\n|]{0,100})?|~{1,20}(?:(?<=~~~)[^~\n|][^\n|]{0,99})?)\Z")
CLOSING = re.compile(r" {0,3}([`~]{3,})[ \t\n]*")
ANY_FENCE = re.compile(r"`{3,}|~{3,}")
ANEW = re.compile(
    rf"(?:^|(?<=\n))(?:#{{1,6}} |{_MARKER} (?=\S)|`{{3,12}}(?=[^`\n]{{0,50}}\n)|~{{3,12}}|(?<=\n\n)(?=\S)|(?<=[ \t]\n)(?=\S))"
)
SIGN = re.compile(r"[\n`\[<\\&!|【]|\(?(?:https?://|ftps?://|www\.)|//", re.IGNORECASE)
TAIL = re.compile(r"\(?(?:h|ht|htt|https?:?/?|f|ft|ftps?:?/?|ww?w?|/)\Z|\(\Z", re.IGNORECASE)
MORE: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {  # complete, and possibly incomplete
    "`": (re.compile(r"(`{1,20})(?!`)[^`\n]{1,300}(?<!`)\1(?!`)(?=.|\n)"), re.compile(r"`{1,20}(?:[^`\n]{0,300}`{0,20})?\Z")),
    "[": (
        re.compile(r"(?:\[[^\[\]`<\\&!\n|:【]{0,80}\]){1,20}(?=[^\[(])|\[[^\[\]`<\\&!\n|:【]{0,80}\]\([^\s()<>\\&`|\"'【\[]{0,2000}\)(?=.|\n)"),
        re.compile(r"(?:\[[^\[\]`<\\&!\n|:【]{0,80}\]){0,20}(?:\[[^\[\]`<\\&!\n|:【]{0,80}|\]?\([^\s()<>\\&`|\"'【\[]{0,2000}\)?)?\Z"),
    ),
    "<": (re.compile(r"<(?=[^a-z/!?])|</?[a-z][a-z\d-]{0,30} ?/?>", re.IGNORECASE), re.compile(r"<(?:/?[a-z][a-z\d-]{0,30})? ?/?\Z", re.IGNORECASE)),
    "\\": (re.compile(r"\\(?:[!-/:-@\[-`{-~]|(?=.|\n))"), re.compile(r"\\\Z")),
    "&": (re.compile(r"&(?=[^#a-z])|&(?:[a-z][a-z\d]{1,31}|#\d{1,7}|#x[\da-f]{1,6});|&(?=[a-z]{1,31}[^a-z\d;])", re.IGNORECASE), re.compile(r"&[#a-z\d]{0,32}\Z", re.IGNORECASE)),
    "!": (re.compile(r"!(?=[^\[])"), re.compile(r"!\Z")),
    "【": (re.compile(r"【[^】\[\]`<\\&!\n|:]{0,80}】(?=[^(])"), re.compile(r"【[^】\[\]`<\\&!\n|:]{0,80}】?\Z")),
    "|": (re.compile(r"\|(?=[^\n]{0,300}\n[ \t]{0,20}[^\s|:>+*-])|\|(?=[^\n]{0,300}\n[ \t]{0,20}\n)"), re.compile(r"\|[^\n]{0,300}(?:\n[ \t]{0,20})?\Z")),
}  # fmt: skip
RUN = re.compile(r"[^\s<]{1,2000}(?=\s)")
RUN_UNSURE = re.compile(r"[^\s<]{1,2000}\Z")
