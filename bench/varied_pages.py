"""A documentation site of any size with real words: Markdown pages in two languages, and questions about them.

English pages are put together from the sentences and the code of one installed Python module each, Czech ones from those of our
own documentation, so that words are as frequent as in real documentation and pages differ in their topics. Each page also has
a few names of its own (a product, settings), as the vocabulary of a real site grows with it.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTIONS = 10
CZECH = 7  # every seventh page
HELD_OUT = 60  # every sixtieth docstring is asked for and not shown
FEWEST = 25  # sentences of a topic
MOST_FILES = 12_000
FROM_ANOTHER = 0.2  # share of the paragraphs that are about another topic
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-ZÁČĎÉÍŇÓŘŠŤÚŽ`])")
_SYLLABLES = (
    "ka", "ro", "mi", "ve", "lu", "ta", "zen", "dor", "pi", "sol", "ner", "vis",
    "gal", "tor", "ba", "hex", "lin", "qua", "fer", "mon", "dax", "ty", "wol", "jen",
)  # fmt: skip

Question = tuple[str, str]  # language and text


@dataclass
class Topic:
    """What pages about one subject are made from."""

    name: str
    language: str
    sentences: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


@dataclass
class Pool:
    """All topics, and the questions: their sentences are in no page."""

    topics: dict[str, list[Topic]]
    questions: list[Question]


def pool() -> Pool:
    """Read the installed modules and our Czech documentation: about half a minute."""
    questions: list[Question] = []
    english = [topic for topic in _modules(questions) if len(topic.sentences) >= FEWEST and topic.code]
    asked = len(questions)
    czech = list(_our_pages(questions))
    return Pool({"en": english, "cs": czech}, _mixed(questions[:asked], questions[asked:]))


def _mixed(english: Sequence[Question], czech: Sequence[Question]) -> list[Question]:
    """Five English questions, then a Czech one, while there are any."""
    rest = random.Random(2).sample(english, len(english))
    mixed: list[Question] = []
    for number, question in enumerate(rest):
        mixed.append(question)
        if number % 5 == 4:
            mixed += czech[number // 5 : number // 5 + 1]
    return mixed


def _modules(questions: list[Question]) -> Iterator[Topic]:
    files = sorted(file for name in ("stdlib", "purelib") for file in Path(sysconfig.get_path(name)).rglob("*.py"))
    random.Random(1).shuffle(files)
    seen = 0
    for file in files[:MOST_FILES]:
        try:
            source = file.read_text("utf-8")
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        topic = Topic(" ".join(file.with_suffix("").parts[-2:]).replace("_", " ").strip(), "en")
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            sentences = _SENTENCE.split(" ".join((ast.get_docstring(node) or "").split()))
            if not sentences[0]:
                continue
            seen += 1
            if seen % HELD_OUT == 0 and 5 <= len(sentences[0].split()) <= 20:
                questions.append(("en", sentences[0]))
                continue
            topic.sentences += [text for text in sentences if 20 < len(text) < 400]
            topic.headings.append(node.name)
            topic.code.append("\n".join(source.splitlines()[node.lineno - 1 : node.lineno + 5]))
        yield topic


def _our_pages(questions: list[Question]) -> Iterator[Topic]:
    for file in sorted((ROOT / "docs" / "cs").glob("*.md")):
        text = re.sub(r"^---.*?^---", "", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        topic = Topic(file.stem, "cs", headings=re.findall(r"^#+ (.+?)(?: \{.*)?$", text, re.MULTILINE))
        prose = [" ".join(part.split()) for part in text.split("\n\n") if part[:1].isalpha()]
        for number, sentence in enumerate(one for part in prose for one in _SENTENCE.split(part)):
            if number % 25 == 24:
                questions.append(("cs", sentence))
            else:
                topic.sentences.append(sentence)
        if len(topic.sentences) >= FEWEST // 2:
            yield topic


def markdown(found: Pool, number: int) -> str:
    """A page: a title and sections of prose, lists and code."""
    chance = random.Random(number)
    language = "cs" if number % CZECH == 0 else "en"
    topic = chance.choice(found.topics[language])
    own = ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(4)]
    product = own[0].title()
    parts = [f"# {product}: {topic.name} {number}"]
    for place in range(SECTIONS):
        heading = chance.choice(topic.headings or [topic.name])
        parts.append(f"## {heading} {chance.choice(own) if place % 3 else product}")
        for _ in range(chance.choice((1, 2, 2, 3))):
            about = chance.choice(found.topics[language]) if chance.random() < FROM_ANOTHER else topic
            sentences = chance.sample(about.sentences, min(len(about.sentences), chance.randint(2, 4)))
            parts.append(f"{' '.join(sentences)} {product} {chance.choice(own)}_{chance.choice(_SYLLABLES)}.")
        if topic.code and chance.random() < 0.4:
            parts.append(f"```python\n{chance.choice(topic.code)}\n```")
    return "\n\n".join(parts) + "\n"


def write_site(folder: Path, found: Pool, pages: int) -> Path:
    """A directory of so many pages, 1,000 in each folder."""
    for number in range(pages):
        file = folder / f"part{number // 1000}" / f"p{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(markdown(found, number), "utf-8")
    return folder
