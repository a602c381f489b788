/** The conversation of this tab: it stays when the reader goes to another page of the site, and ends with the tab. */
import type { Api } from "../shared/api";
import { Conversation } from "../shared/conversation";
import { Storage } from "../shared/storage";
import type { Exchange } from "../shared/types";

const NAME = "conversation";

export interface Session {
  conversation: Conversation;
  /** Ends the conversation; the next session is a new one. */
  forget: () => void;
}

export function session(api: Api, assistant: string): Session {
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
    const exchanges = JSON.parse(text || "[]") as Exchange[];
    return exchanges.map(({ answer, ...rest }) => {
      const ended = answer.state === "waiting" || answer.state === "writing";
      return { ...rest, answer: ended ? { ...answer, state: "interrupted" } : answer };
    });
  } catch {
    return []; // of another version
  }
}
