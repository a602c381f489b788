/** The address of the page: `?chat=ID` shows a conversation, `?q=QUESTION` asks at once (`&page=ADDRESS` for a reader of that page), `?search=WORDS` searches, `?shared=TOKEN` shows a shared answer. */

export interface Address {
  chat?: string;
  q?: string;
  page?: string;
  model?: string;
  search?: string;
  shared?: string;
}

export type Mode = "ask" | "search";
export const modeOf = ({ search }: Address): Mode => (search === undefined ? "ask" : "search");

export function currentAddress(): Address {
  return Object.fromEntries(new URLSearchParams(location.search));
}

export function addressOf(address: Address): string {
  const query = new URLSearchParams(Object.entries(address)).toString();
  return new URL(query ? `?${query}` : ".", document.baseURI).href;
}

export function go(address: Address, { replace = false } = {}): void {
  const url = addressOf(address);
  if (url === location.href) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
}
