/** What is in the panel: a greeting with first questions, or the conversation, and the field for a question. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { InterfaceAssistant, InterfaceBody } from "../../api";
import { AnswerView, Questions, shown } from "../shared/answer";
import answers from "../shared/answers.css";
import { highlighter } from "../shared/code";
import { Search } from "../shared/search";
import { ApiError, interfaceHere } from "../shared/api";
import { Composer } from "../shared/composer";
import { type Conversation, useConversation } from "../shared/conversation";
import { Icon, IconButton } from "../shared/icons";
import { useInterface } from "../shared/interface";
import { Pages } from "../shared/link";
import { Problem } from "../shared/problems";
import { inLanguage } from "../shared/texts";
import { useUi } from "../shared/ui";
import type { Options } from "./options";
import { session } from "./session";

highlighter.load = () => import("../shared/highlight");

const style = new CSSStyleSheet();
style.replaceSync(answers);

interface Props {
  options: Options;
  /** How often it was opened, and what to ask at once. */
  opened: { times: number; question: string; quietly: boolean };
  onClose: () => void;
}

export function Panel({ options, opened, onClose }: Props): JSX.Element {
  const { api, t } = useUi();
  const { data: known, problem: failed, reload } = useInterface(api, useMemo(interfaceHere, [opened.times]));
  const info = known?.assistants ? known : null;
  const problem = failed ?? (known && !info ? new ApiError("key", "") : null);
  const assistant = info?.assistants?.find(({ id }) => id === options.assistant) ?? info?.assistants?.[0];
  const [{ conversation, forget }, setSession] = useState(() => session(api, options.assistant));
  const exchanges = useConversation(conversation);
  const field = useRef<HTMLTextAreaElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState(false);
  const [query, setQuery] = useState(""); // stays while one asks
  const asked = useRef(0);
  const last = exchanges.at(-1);
  const pages = inLanguage(assistant?.pages ?? {}, api.language);
  const ask = (question: string, at?: number, page = location.href) => {
    if (!field.current?.matches(":focus")) sheet.current!.focus(); // what was clicked goes away, and Escape shall still be of the panel
    setSearch(false);
    void conversation.ask(question, request(options, assistant, info, api.language, page), at);
  };
  useLayoutEffect(() => {
    const root = sheet.current!.getRootNode() as ShadowRoot;
    root.adoptedStyleSheets = root.adoptedStyleSheets.toSpliced(1, 0, style);
  }, []);
  useEffect(() => {
    if (!opened.quietly) field.current?.focus();
    if (!opened.question || !info || asked.current === opened.times) return;
    asked.current = opened.times;
    ask(opened.question);
  }, [opened.times, info]);
  const searchFor = (words: string) => { setQuery(words); setSearch(true); };
  const restart = () => {
    forget();
    setSession(session(api, options.assistant));
    field.current?.focus();
  };
  // not left to the browser, because a site's script may have its own use for Escape, also while the browser's controls have the focus
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const dialog = sheet.current!.closest("dialog")!;
      const elsewhere = !dialog.matches(":modal") && !event.composedPath().includes(dialog); // beside the page, which has its own use for Escape
      if (event.key !== "Escape" || event.defaultPrevented || !dialog.open || elsewhere) return;
      event.preventDefault();
      event.stopPropagation();
      if (conversation.busy) conversation.stop();
      else onClose();
    };
    window.addEventListener("keydown", onKeyDown, true);
    return () => window.removeEventListener("keydown", onKeyDown, true);
  });
  return (
    <div class="da-sheet" tabIndex={-1} ref={sheet} onClick={(event) => onLink(event, onClose)}>
      <header class="da-head">
        <img src={`${api.base}brand/icon`} alt="" width={24} height={24} onError={(event) => (event.currentTarget.hidden = true)} />
        <h2>{(options.assistant && assistant ? inLanguage(assistant.name, api.language) : info?.title) ?? t.widget.title}</h2>
        <IconButton icon={search ? "ask" : "search"} label={search ? t.widget.ask : t.search.field}
          onClick={() => (search ? setSearch(false) : searchFor(query))} />
        {(search || last) && (
          <a class="da-icon-button" href={`${api.base}?${new URLSearchParams({ ...(search ? { search: query } : { q: last!.question }), model: assistant?.id ?? "" })}`}
            target="_blank" rel="noopener" title={t.widget.full}><Icon name="full" /></a>
        )}
        {last && <IconButton icon="plus" label={t.widget.restart} onClick={restart} />}
        <IconButton icon="close" label={t.widget.close} onClick={onClose} />
      </header>
      {search ? (
        <div class="da-scroll">
          <Search api={api} language={sent(info, api.language)} page={location.href} model={assistant?.id ?? options.assistant}
            collections={options.collections} pages={pages} query={query} onQuery={setQuery} onAsk={(question, page) => ask(question, undefined, page)} />
        </div>
      ) : (
        <>
          <div class="da-scroll" tabIndex={-1}>
            {problem && <Problem problem={problem} onRetry={reload} />}
            {!last && !problem && (
              <div class="da-welcome">
                <p>{options.greeting || info?.welcome || t.widget.greeting} {t.widget.near}</p>
                <Questions label={t.chat.firstQuestions} questions={inLanguage(assistant?.suggestions ?? {}, api.language) ?? []} onAsk={ask} />
                <Pages label={t.search.pages} pages={pages} />
              </div>
            )}
            <Exchanges conversation={conversation} model={assistant?.id ?? ""} info={info} onAsk={ask} onSearch={searchFor} />
          </div>
          <footer class="da-foot">
            <Composer busy={conversation.busy} followUp={!!last} onAsk={ask} onStop={() => conversation.stop()} field={field} />
          </footer>
        </>
      )}
    </div>
  );
}

/** A source on this site opens in this tab: a panel over the page gives way, so that one sees the section. */
function onLink(event: MouseEvent, onClose: () => void): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link?.closest(":modal") && plain && link.target !== "_blank") onClose();
}

/** The language, if the service is made for it; it refuses others. */
function sent(info: InterfaceBody | null, language: string): string {
  return info?.languages?.includes(language) ? language : "";
}

function request(options: Options, assistant: InterfaceAssistant | undefined, info: InterfaceBody | null, language: string, page: string) {
  return {
    model: assistant?.id ?? options.assistant,
    page,
    ...(sent(info, language) && { language }),
    ...(options.collections.length > 0 && { filters: { collections: options.collections } }),
  };
}

interface ExchangesProps {
  conversation: Conversation;
  model: string;
  info: InterfaceBody | null;
  onAsk: (question: string, at?: number) => void;
  onSearch: (words: string) => void;
}

function Exchanges({ conversation, model, info, onAsk, onSearch }: ExchangesProps): JSX.Element {
  const { t } = useUi();
  const { exchanges } = conversation;
  const last = exchanges.at(-1);
  const end = useRef<HTMLLIElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "start" }), [last?.id]);
  return (
    <>
      <ol class="da-exchanges">
        {exchanges.map((exchange, i) => (
          <li key={exchange.id} ref={exchange === last ? end : null}>
            <h3 class="da-question"><bdi>{exchange.question}</bdi></h3>
            <AnswerView exchange={exchange} model={model} known={info}
              onAgain={() => onAsk(exchange.question, i)} onRated={(rating) => conversation.change(exchange.id, { rating })}
              onNext={exchange === last ? onAsk : undefined} onSearch={onSearch} />
          </li>
        ))}
      </ol>
      <p class="da-hidden" role="status">
        {last?.answer.state === "done" ? t.chat.finished(shown(last.answer).sources.length) : last && conversation.busy ? t.chat.started : ""}
      </p>
    </>
  );
}
