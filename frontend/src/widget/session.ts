/** The conversation of this tab: it stays when the reader goes to another page of the site, and ends with the tab. */
import type { Api } from "../shared/api";
import { Conversation, settled } from "../shared/conversation";
import { Storage } from "../shared/storage";
import type { Exchange } from "../shared/types";

const NAME = "conversation";

/** `forget` ends the conversation; the next session is a new one. */
export function session(api: Api, assistant: string) {
  const storage = new Storage(`docs-assistant:${api.base}:${assistant}:`, "sessionStorage");
  const conversation = new Conversation(api, read(storage.get(NAME)));
  const end = conversation.onChange(() => storage.set(NAME, JSON.stringify(conversation.exchanges)));
  const forget = (): void => {
    end();
    conversation.stop();
    storage.set(NAME, "");
  };
  return { conversation, forget };
}

function read(text: string): Exchange[] {
  try {
    return (JSON.parse(text || "[]") as Exchange[]).map(settled);
  } catch {
    return []; // of another version
  }
}
