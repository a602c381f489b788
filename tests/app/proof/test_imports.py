"""Imports and scoped packages in the code of answers, against what the pages import."""

import pytest

from app.core.prompts import load_prompts
from app.proof.check import Checker
from app.proof.evidence import Evidence, imports_in, packages_in
from app.proof.wording import Wording

PROMPTS = load_prompts(("en", "cs"))
WORDING = Wording(PROMPTS.languages)
PAGE = """## Use it

Run `npm install @acme/cli-tools` first. `express.Router()` makes a router for `Client`, `open` and `Watcher`.

```ts
import { Client, type Options } from '@acme/sdk';
import {
  open,
  close as shut,
} from "@acme/sdk/io";
const { z } = require('zod')
import express from 'express';
```

```python
from acme.sdk import (
    Reader,
    Writer as W,
)
from acme import run, Watcher
```
"""


def faults(code: str) -> int:
    """How many of the lines are marked."""
    checker = Checker(Evidence([PAGE], ["en"], "How do I use it?"), "en", WORDING)
    return sum(bool(checker.code(line)) for line in code.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "import { Client } from '@acme/sdk';",
        'import { Client, Options } from "@acme/sdk"',
        "import type { Options } from '@acme/sdk';",
        "import { open } from '@acme/sdk/io';",
        "const { z } = require('zod')",
        "import { Router } from 'express';",  # the page has express.Router
        "import express from 'express';",
        "from acme.sdk import Reader, Writer",
        "from acme import Watcher as W",
        "npm install @acme/cli-tools",
        "import { Client } from '@your-scope/client';",
    ],
)
def test_what_the_pages_import_is_proved(line: str) -> None:
    assert faults(line) == 0


@pytest.mark.parametrize(
    "line",
    [
        "import { Client } from '@acme/sdk/io';",  # each name and each module is there, but not together
        "import { open } from '@acme/sdk';",
        "import { Watcher } from '@acme/sdk';",
        "const { Client } = require('zod')",
        "from acme.sdk import run",
        "from acme import Reader",
        "npm install @acme/cli",
        "npm install @acme/sdk-tools",
        "import { Client } from '@acme/client';",
    ],
)
def test_a_name_of_another_module_and_a_part_of_a_package_are_marked(line: str) -> None:
    assert faults(line) == 1


def test_an_import_over_several_lines_is_judged_line_by_line() -> None:
    """Its names and its module have to be there."""
    assert faults("import {\n  open,\n  close,\n} from '@acme/sdk/io';") == 0
    assert faults("import {\n  open,\n  Publisher,\n} from '@acme/sdk/io';\nimport express from 'express';") == 1
    assert faults("from acme.sdk import (\n    Reader,\n    Writer,\n)") == 0


def test_a_package_in_a_sentence_counts_as_a_whole_too() -> None:
    checker = Checker(Evidence([PAGE], ["en"], "How do I use it?"), "en", WORDING)
    assert [one.kind for one in checker.sentence("Run npm install for @acme/cli first [1].")] == ["name"]
    assert checker.sentence("Run npm install for @acme/cli-tools first [1].") == []


def test_what_is_no_package_and_no_import_is_left_alone() -> None:
    assert packages_in("mail a@b.org/x, actions/checkout@v4, git@host:a/b, @scope/name@1.2, @scope/a.b.") == [
        "@scope/name",
        "@scope/a.b",
    ]
    assert [*imports_in("a letter from 'home' {x}; from here import")] == []
    assert [*imports_in("import * as all from 'fs'; import x from 'y'")] == []
