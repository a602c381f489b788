// Parts of the front end that need no page, against the service at the address in the first argument; findings as JSON.
import { Api } from "../frontend/src/shared/api";
import { typed } from "../frontend/src/shared/highlight";
import { History } from "../frontend/src/shared/history";
import { below } from "../frontend/src/shared/markdown";
import { words } from "../frontend/src/shared/problems";
import { cells, marker } from "../frontend/src/shared/quotes";
import { Storage } from "../frontend/src/shared/storage";
import { cs } from "../frontend/src/shared/texts/cs";
import { de } from "../frontend/src/shared/texts/de";
import { en } from "../frontend/src/shared/texts/en";
import { session } from "../frontend/src/widget/session";

globalThis.window = Object.assign(new EventTarget(), { setTimeout, clearTimeout });
const base = process.argv[2];
const texts = Object.entries({ en, cs, de });

/** The state of an answer that was ended so, and that state after the page was loaded again. */
async function ended(end) {
  const api = new Api(base, "right-key-of-tests");
  const storage = new Storage(`${end.name}:`);
  const conversation = new History(api, storage).begin();
  const over = conversation.ask("Q?", { model: "docs-assistant" });
  while (!conversation.exchanges[0].answer.text) await new Promise((resolve) => setTimeout(resolve, 10));
  end(conversation);
  if (end !== crash) await over;
  const read = () => new History(api, storage).get(conversation.id).exchanges[0].answer.state;
  const result = { now: conversation.exchanges[0].answer.state, later: read() };
  conversation.stop();
  return result;
}
function stop(conversation) { conversation.stop(); }
function leave() { window.dispatchEvent(new Event("pagehide")); }
function crash() {}

/** The state in which the widget finds an answer on the next page. */
function inWidget(state) {
  const api = new Api(`${base}${state}/`);
  new Storage(`docs-assistant:${api.base}:a:`, "sessionStorage").set(
    "conversation", JSON.stringify([{ id: "1", question: "Q?", answer: { state, text: "Begun" } }]));
  return session(api, "a").conversation.exchanges[0].answer.state;
}

/** What is shown to a reader whose address has sent too many wrong keys. */
async function blocked() {
  for (let i = 0; i < 100; i++) {
    const problem = await new Api(base, `wrong ${i}`).fetch("v1/models").catch((error) => error);
    if (problem.code === "wrong_keys") {
      return { kind: problem.kind, retryAfter: problem.retryAfter, titles: texts.map(([, t]) => words(problem, t)[0]) };
    }
  }
}

/** The cells of a table that are marked as those of the row that was quoted. */
function markedCells() {
  const rows = ["DOCS_HOST", "server.host", "127.0.0.1", "address to listen on", "DOCS_PORT", "server.port", "8000", "port to listen on"];
  const mark = marker(cells("`DOCS_PORT` – `server.port` – `8000` – port to listen on"), rows, "en");
  return rows.filter((cell) => mark(cell).length);
}

/** What stands below a heading, and below one that isn't there. */
function sections() {
  const page = "# Page\n\nOf `the` page.\n\n## Own `code`\n\nFirst.\n\n### Next\n\nFar.\n";
  return [below("Own code", page), below("Page", page), below("Nothing", page)].map((text) => text.trim());
}

console.log(JSON.stringify({
  sections: sections(),
  cells: markedCells(),
  stopped: await ended(stop),
  left: await ended(leave),
  crashed: await ended(crash),
  widget: ["writing", "stopped", "done"].map(inWidget),
  interrupted: texts.map(([, t]) => t.chat.interrupted),
  blocked: await blocked(),
  about: texts.map(([, t]) => t.page.about(1)),
  typed: [
    "$ cd a && \\\n  ls  # b\nc.md\n(venv) me@host:~/a$ pwd\n/a", "PS C:\\> dir\na", ">>> for a in b:\n...     a\n...\n1", "# no session\n> a",
  ].map(typed),
}));
