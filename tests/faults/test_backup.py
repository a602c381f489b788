"""The way of docs/en/backup.md to copy an index in a directory while runs write to it."""

import shutil

import pytest

from tests.faults.places import Directory
from tests.faults.rig import Rig


@pytest.mark.parametrize("rig", ["embedded"], indirect=True)
async def test_a_copy_whose_pointer_came_first_is_whole_whatever_was_published_meanwhile(rig: Rig):
    """`index.json` is copied, two runs publish, the tables are copied: the copy has the state of its pointer."""
    rig.write_site("state1")
    await rig.run()
    before, data, copy = await rig.content(), rig.folder / "index", rig.folder / "restored/index"
    copy.mkdir(parents=True)
    shutil.copy(data / "index.json", copy)
    for state in ("state2", "state3"):
        rig.write_site(state)
        await rig.run()
    shutil.copytree(data, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("index.json"))
    rig.place = Directory(copy.parent)
    assert await rig.content() == before
    assert await rig.answers() == {"state1"}
    rig.write_site("state4")
    await rig.run()
    assert await rig.answers() == {"state4"}
