"""`docs-assistant prompts`: what is shipped becomes a start for one's own, and nothing is replaced without a word."""

import json
from pathlib import Path

from app.core.prompts import files_in_force, load_prompts, own_files, placeholders, shipped_files


def test_an_exported_directory_loads_unchanged(cli, tmp_path: Path):
    """All files of all shipped languages, and each text is what it was."""
    assert cli("prompts", "export", str(tmp_path / "mine")).code == 0
    assert sorted(own_files(str(tmp_path / "mine"))) == sorted(shipped_files())
    assert files_in_force(str(tmp_path / "mine")) == shipped_files()
    exported, shipped = (load_prompts(["cs", "en", "de"], folder) for folder in (str(tmp_path / "mine"), ""))
    assert (exported.languages, exported.personas) == (shipped.languages, shipped.personas)
    for code in shipped.languages:
        for name, values in placeholders().items():
            wanted = dict.fromkeys(values, "x")
            assert exported.render(code, name, **wanted) == shipped.render(code, name, **wanted)
    assert "As shipped, so you can delete them: cs/analyze.md" in cli("prompts", "diff", str(tmp_path / "mine")).out


def test_only_what_is_asked_is_written_and_nothing_is_replaced_without_a_word(cli, tmp_path: Path):
    """By name, file or pattern, by language; a changed file stops the export before anything is written."""
    mine = tmp_path / "mine"
    for words, written in (
        (["synthesize", "--language", "en"], {"en/synthesize.md"}),
        (["cs/style.md"], {"cs/style.md"}),
        (["persona/k*", "--language", "de"], {"de/persona/kids.md"}),
    ):
        before = set(own_files(str(mine))) if mine.exists() else set()
        assert cli("prompts", "export", str(mine), *words).code == 0
        assert set(own_files(str(mine))) - before == written
    edited = mine / "en/synthesize.md"
    edited.write_text(edited.read_text("utf-8") + "- Be brief.\n", "utf-8")
    refused = cli("prompts", "export", str(mine), "synthesize")
    assert refused.code == 1
    assert "en/synthesize.md already, with other content, so nothing was written" in refused.err
    assert not (mine / "cs/synthesize.md").exists()
    assert cli("prompts", "export", str(mine), "synthesize", "--force").out.startswith(
        f"Written into {mine}: 3 files (en/synthesize.md replaced)."
    )
    wrong = cli("prompts", "export", str(mine), "synthesise")
    assert (wrong.code, "There is no prompt 'synthesise'. Available: analyze" in wrong.err) == (1, True)
    edited.write_text("x", "utf-8")
    assert cli("prompts", "export", str(edited)).code == 1


def test_diff_says_what_differs_and_which_shipped_file_changed_since_the_export(cli, tmp_path: Path):
    """An update of a file that was exported, a line of one's own, and a file of which nothing is known."""
    mine = tmp_path / "mine"
    cli("prompts", "export", str(mine), "synthesize", "style", "--language", "en")
    edited = mine / "en/synthesize.md"
    edited.write_text(edited.read_text("utf-8").replace("Rules:", "Rules (short answers):"), "utf-8")
    (mine / "en/own_step.md").write_text("Mine.", "utf-8")
    record = json.loads((mine / ".exported.json").read_text("utf-8"))
    (mine / ".exported.json").write_text(json.dumps(record | {"en/synthesize.md": "earlier"}), "utf-8")
    done = cli("prompts", "diff", str(mine))
    assert done.code == 0
    assert "-Rules:\n+Rules (short answers):" in done.out
    assert "take over what you want: en/synthesize.md\n" in done.out
    assert "As shipped, so you can delete them: en/style.md\n" in done.out
    assert "Not among the shipped files: en/own_step.md\n" in done.out
    (mine / ".exported.json").write_text("[", "utf-8")
    assert ".exported.json can't be read" in cli("prompts", "diff", str(mine)).err
    assert "there is no such directory" in cli("prompts", "diff", str(tmp_path / "none")).err
