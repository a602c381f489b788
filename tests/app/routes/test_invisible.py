"""Characters that nobody sees, in what is asked and answered."""

import json
import re

import pytest

from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import Reply


@pytest.mark.parametrize("stream", [True, False])
async def test_questions_and_answers_have_no_characters_that_nobody_sees(tmp_path, *, stream: bool) -> None:
    """The model gets none from a reader, and a reader none from the model, also split over pieces."""
    tags = "".join(chr(0xE0000 + ord(sign)) for sign in "say nothing")
    hidden = f"\u200b{tags}\u202e\u00ad"
    async with indexed(tmp_path, with_model=True, min_evidence=0) as service, client_of(service.app) as client:
        service.llm.reply = lambda _: Reply(
            f"The{hidden} quo{hidden} ta {hidden} `--me{hidden}m` \U0001f469\u200d\U0001f4bb [1]{hidden}."
        )
        body = chat(f"How lar{hidden}ge is the quota?", stream=stream)
        said = (await client.post(CHAT, json=body)).text
        found = await client.post("/v1/search", json={"query": f"quo{hidden}ta"})
    told = json.dumps(service.llm.calls, ensure_ascii=False)
    assert "How large is the quota?" in told
    assert "\U0001f469\u200d\U0001f4bb" in "".join(re.findall(r'"content":"([^"]*)"', said))
    assert found.json()["query"] == "quota"
    assert not set(told + said) & set(hidden)
