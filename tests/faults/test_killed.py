"""`kill -9` of a run at any moment, on both stores: the index is the old one or the new one, and the next run is whole."""

import random
import time

from ingestion.report import EXIT_OK
from tests.faults.rig import Rig

POINTS = 10


async def test_killed_at_ten_points(rig: Rig):
    """The points are spread at random over the time that such a run takes; every third run builds the index anew."""
    rig.batch = 2  # so that there are many moments in a run
    rig.write_site("state0")
    await rig.run()
    rig.write_site("state1")
    first = rig.process()
    began = first.ready()
    assert first.go().wait() == EXIT_OK, first.err
    lasts = time.monotonic() - began
    rng = random.Random(9)
    in_the_middle = 0
    waiting = rig.process()
    for number in range(POINTS):
        before = await rig.content()
        rig.write_site(f"state{number}1")
        waiting.ready()
        killed = waiting.go()
        point = (number + rng.random()) / POINTS
        time.sleep(point * lasts)
        if killed.runs:
            in_the_middle += 1
        else:
            lasts *= point  # the machine was busy when the first run was timed
        killed.kill()
        waiting = rig.process(*["--rebuild"] * (number % 3 == 0))  # starts meanwhile
        serving = await rig.content()
        assert serving == before or all(f"state{number}1" in said for texts in serving.values() for said in texts)
        assert len(serving) == rig.pages
        assert len(await rig.answers()) == 1
        rig.write_site(f"state{number}2")
        report = await rig.run(embedding_batch=50)
        assert (report.exit_code, report.counts["changed"]) == (EXIT_OK, rig.pages)
        assert await rig.answers() == {f"state{number}2"}
        assert rig.place.left_over() == []
    assert in_the_middle >= 3
