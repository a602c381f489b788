"""What counts as copied: whole statements, in any markup; not parts of them, and not what states nothing."""

import pytest

from app.core.turn import Verbatim
from app.proof.verbatim import statements, word_for_word

PAGE = """# Volumes

A volume is storage that **outlives** the job. Never delete the
folder `.snapshots` by hand. [Ask](https://docs.test/ask) the *operators* first.

- Copies are kept for thirty days.
- Two of them

| class | speed |
|---|---|
| `nfs-csi` | 400 MB/s |

```sh
kubectl apply -f volume.yaml
```

Svazek nejde zmenšit. Die Kopie dauert 5 Minuten.
"""


@pytest.mark.parametrize(
    ("answer", "found", "of"),
    [
        ("A volume is storage that outlives the job [1].", 1, 1),
        ("**Never delete the folder .snapshots by hand** [1]. Ask the operators first.", 2, 2),
        ("1. copies are kept for thirty days [2]", 1, 1),
        ("> Two of them", 1, 1),
        ("| Class | Speed |\n|---|---|\n| nfs-csi | 400 MB/s |", 1, 1),
        ("Run this:\n\n```sh\nkubectl apply -f volume.yaml\nkubectl get pvc\n```", 1, 2),
        ("Svazek nejde zmenšit [1]. Svazek jde zmenšit [1].", 1, 2),
        ("Die Kopie dauert 5 Minuten [1][2].", 1, 1),
        ("Delete the folder `.snapshots` by hand [1].", 0, 1),  # a part may say the opposite
        ("Copies are kept for thirty days, or less.", 0, 1),
        ("The folder is deleted by hand [1]. A volume outlives the job.", 0, 2),
        ("`kubectl Apply -f volume.yaml`\n\n```\nkubectl Apply -f volume.yaml\n```", 1, 2),  # the case of code counts
        ("## Volumes\n\n**Steps**\n\nWhat is a volume? This:\n\n---\n\n---", None, None),
        ("", None, None),
    ],
)
def test_whole_statements_are_compared(answer: str, found: int | None, of: int | None) -> None:
    assert word_for_word(answer, [PAGE, ""]) == (None if of is None else Verbatim(of, found))


def test_what_is_quoted_counts_unless_it_was_cut() -> None:
    assert word_for_word("", (), "It runs. It is kept.\n\n- And so …") == Verbatim(2, 2)


def test_an_index_in_code_is_no_citation() -> None:
    assert [*statements("It is `a[1]`. It is `a[2]` [2].")] == ["it is a[1]", "it is a[2]"]
