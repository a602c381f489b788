/** The page: its state, and the layout around the conversation. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { InterfaceAssistant, InterfaceBody } from "../../api";
import type { Api } from "../shared/api";
import { ApiError } from "../shared/api";
import type { History, KeptConversation } from "../shared/history";
import { useInterface } from "../shared/interface";
import { KeyForm, Problem } from "../shared/problems";
import type { Storage } from "../shared/storage";
import { inLanguage, texts, uiLanguage } from "../shared/texts";
import { UiProvider } from "../shared/ui";
import { type Address, type Mode, currentAddress, go, modeOf } from "./address";
import { Chat } from "./chat";
import { useChoices } from "./choices";
import { Header } from "./header";
import { Shared } from "./sharing";
import { Sidebar } from "./sidebar";
import { Search } from "../shared/search";

interface Props {
  api: Api;
  storage: Storage;
  session: Storage;
  history: History;
}

export function App({ api, storage, session, history }: Props): JSX.Element {
  const [choices, choose] = useChoices(storage);
  const language = uiLanguage(choices.language);
  const ui = useMemo(() => ({ api, t: texts(language), target: "_blank" as const }), [language]);
  api.language = language;
  const { data: known, problem, reload } = useInterface(api);
  const place = usePlace(history);
  const assistant = chosen(known, place.address.model ?? choices.assistant);
  const { conversation } = place;
  const still = inLanguage(known?.reading ?? {}, language);
  const [menu, setMenu] = useState(false);
  const tone = assistant?.personas.some(({ id }) => id === choices.tone) ? choices.tone : "";
  const options = { model: assistant?.id ?? "", language, ...(tone && { persona: tone }) };
  const ask = useCallback(
    (question: string, at?: number, page?: string) => {
      place.keepAddress();
      void conversation.ask(question, { ...optionsNow.current, ...(page && { page }) }, at);
    },
    [conversation],
  );
  const optionsNow = useRef(options);
  optionsNow.current = options;
  useLook(language, choices.theme, conversation.title || (known?.title ?? ""));
  useAskedByAddress(assistant, place.address, choose, ask);
  const key = (value: string, remember: boolean) => {
    api.key = value;
    session.set("key", value);
    storage.set("key", remember ? value : "");
    reload();
  };
  const wrongKey = problem?.kind === "key" && api.key !== "";
  const needsKey = problem?.kind === "key" || (known?.key_required && !known.assistants);
  return (
    <UiProvider value={ui}>
      <a class="da-skip" href="#da-main" onClick={skip}>{ui.t.page.skip}</a>
      <div class="da-app">
        <Sidebar history={history} current={conversation.id} days={known?.keeps?.days ?? 0} open={menu} onClose={() => setMenu(false)}
          onGo={place.show} />
        <div class="da-main">
          <Header {...{ known, assistant, choices, choose, language }} mode={modeOf(place.address)} places={place.places}
            onMenu={() => setMenu(true)} onGo={place.show} onForget={api.key ? () => key("", false) : undefined} />
          {place.address.shared ? (
            <Shared token={place.address.shared} onGo={place.show} />
          ) : needsKey ? (
            <main class="da-centre" id="da-main" tabIndex={-1}><KeyForm said={wrongKey ? ui.t.page.wrongKey : ui.t.problems.kinds.key} wrong={wrongKey} signIn={known?.sign_in ?? false} onKey={key} /></main>
          ) : place.address.search !== undefined ? (
            <main class="da-column" id="da-main" tabIndex={-1}><h1 class="da-hidden">{ui.t.search.label}</h1><Search api={api} language={language} model={assistant?.id ?? ""} query={place.address.search} pages={inLanguage(assistant?.pages ?? {}, language)}
              onQuery={(search) => go({ search }, { replace: true })} onAsk={place.ask} /></main>
          ) : (
            <Chat {...{ known, assistant, conversation, language, ask }} key={conversation.id} onSearch={(search) => place.show({ search })}>
              {problem && <Problem problem={problem} onRetry={reload} />}
              {known?.index === null && <Problem problem={still ? new ApiError("reading", still) : new ApiError("no_index", "")} onRetry={reload} />}
            </Chat>
          )}
        </div>
      </div>
    </UiProvider>
  );
}

function skip(event: Event): void {
  event.preventDefault(); // `<base>` would make it another address
  (document.querySelector<HTMLElement>("main :is(textarea, input)") ?? document.querySelector("main"))?.focus();
}

function chosen(known: InterfaceBody | null, id: string): InterfaceAssistant | null {
  return known?.assistants?.find((one) => one.id === id) ?? known?.assistants?.[0] ?? null;
}

/** What the address shows; the browser's back button goes through it. */
function usePlace(history: History) {
  const [address, setAddress] = useState<Address>(currentAddress);
  const fresh = useRef<KeptConversation>(null);
  const found = address.chat ? history.get(address.chat) : null;
  if (!found && (!fresh.current || fresh.current.exchanges.length)) fresh.current = history.begin();
  const conversation = found ?? fresh.current!;
  useEffect(() => {
    const moved = () => setAddress(currentAddress());
    window.addEventListener("popstate", moved);
    return () => window.removeEventListener("popstate", moved);
  }, []);
  const places = useRef<Record<Mode, Address>>({ ask: {}, search: { search: "" } }); // the last address of each
  places.current[modeOf(address)] = address;
  const show = (to: Address, how = {}) => {
    const left = currentAddress(); // the search changes it without rendering the page
    places.current[modeOf(left)] = left;
    go(to, how);
    setAddress(to);
  };
  const keepAddress = () => {
    const now = currentAddress();
    if (now.chat !== conversation.id) show({ chat: conversation.id }, { replace: now.q !== undefined });
  };
  return { address, places: places.current, conversation, show, keepAddress, ask: (q: string, page = "") => show({ q, ...(page && { page }) }) };
}

function useLook(language: string, theme: string, title: string): void {
  useEffect(() => {
    document.documentElement.lang = language;
    document.documentElement.dataset["theme"] = theme;
    if (title) document.title = title;
  }, [language, theme, title]);
}

/** Asks what `?q=` says, once, as soon as the assistant is known. */
function useAskedByAddress(
  assistant: InterfaceAssistant | null,
  { q, model, page }: Address,
  choose: (change: { assistant: string }) => void,
  ask: (question: string, at?: number, page?: string) => void,
): void {
  useEffect(() => {
    if (!assistant || !q?.trim()) return;
    ask(q.trim(), undefined, page);
    if (model) choose({ assistant: model });
  }, [assistant === null, q]);
}
