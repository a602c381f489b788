/** One conversation: the first questions or what was asked so far, and the field for the next question. */
import type { ComponentChildren, JSX, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { InterfaceAssistant, InterfaceBody } from "../../api";
import { AnswerView, Questions, shown } from "../shared/answer";
import { Composer } from "../shared/composer";
import { type Conversation, useConversation } from "../shared/conversation";
import { CopyButton } from "../shared/copy";
import { IconButton } from "../shared/icons";
import { Pages } from "../shared/link";
import { inLanguage } from "../shared/texts";
import type { Exchange } from "../shared/types";
import { useUi } from "../shared/ui";
import { addressOf } from "./address";
import { useFollowing } from "./following";
import { Question } from "./question";
import { ShareButton } from "./sharing";

interface Props {
  known: InterfaceBody | null;
  assistant: InterfaceAssistant | null;
  conversation: Conversation;
  language: string;
  ask: (question: string, at?: number) => void;
  onSearch: (words: string) => void;
  /** What is wrong with the service. */
  children?: ComponentChildren;
}

export function Chat({ known, assistant, conversation, language, ask, onSearch, children }: Props): JSX.Element {
  const { t } = useUi();
  const exchanges = useConversation(conversation);
  const empty = exchanges.length === 0;
  const field = useField(conversation, empty);
  const { last, away, follow } = useFollowing(exchanges);
  const send = (question: string, at?: number) => {
    ask(question, at);
    follow("fill");
  };
  const composer = (
    <div class="da-ask" id="da-ask">
      {away && !empty && <IconButton icon="chevron" label={t.page.bottom} class="da-bottom" onClick={() => follow("end")} />}
      <Composer busy={conversation.busy} followUp={!empty} onAsk={send} onStop={() => conversation.stop()} field={field} />
    </div>
  );
  return (
    <main class={empty ? "da-chat da-empty" : "da-chat"} id="da-main" tabIndex={-1}>
      <div class="da-column">
        {!empty && <h1 class="da-hidden">{known?.title || document.title}</h1>}
        {empty ? (
          <Start {...{ known, assistant, language }} onAsk={send}>{composer}</Start>
        ) : (
          exchanges.map((exchange, i) => (
            <ExchangeView key={exchange.id} {...{ exchange, known, assistant, conversation, onSearch }} onAsk={(question) => send(question, i)}
              {...(i === exchanges.length - 1 && { box: last, onNext: send })} />
          ))
        )}
        {!exchanges.at(-1)?.answer.problem && children}
        <div class="da-end" />
      </div>
      {!empty && composer}
      <Announcement exchanges={exchanges} />
    </main>
  );
}

/** The text field, which `/` focuses from anywhere; Escape stops the answer from anywhere. */
function useField(conversation: Conversation, empty: boolean) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const within = (event.target as HTMLElement).matches("input, textarea, select");
      if (event.key === "/" && !within && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        field.current?.focus();
      }
      if (event.key === "Escape" && !within && conversation.busy) conversation.stop();
    };
    document.addEventListener("keydown", pressed);
    // a phone's keyboard would hide half of the page
    if (window.matchMedia("(pointer: fine)").matches) field.current?.focus();
    return () => document.removeEventListener("keydown", pressed);
  }, [conversation, empty]); // the first question makes another field, below the answers
  return field;
}

interface StartProps extends Pick<Props, "known" | "assistant" | "language"> {
  onAsk: (question: string) => void;
  children: ComponentChildren;
}

function Start({ known, assistant, language, onAsk, children }: StartProps): JSX.Element {
  const { t } = useUi();
  const suggestions = inLanguage(assistant?.suggestions ?? {}, language) ?? [];
  const about = [known?.index && t.page.about(known.index.pages), known?.model === false && t.page.noModel];
  return (
    <>
      <img class="da-logo" src="brand/icon" alt="" width={56} height={56} />
      <h1>{known?.welcome || known?.title || document.title}</h1>
      <p class="da-muted da-about">{about.filter(Boolean).join(" ")}</p>
      {children}
      <Questions label={t.chat.firstQuestions} questions={suggestions} onAsk={onAsk} />
      <Pages label={t.search.pages} pages={inLanguage(assistant?.pages ?? {}, language)} besides={suggestions} />
    </>
  );
}

interface ExchangeProps extends Pick<Props, "known" | "assistant" | "conversation" | "onSearch"> {
  exchange: Exchange;
  /** Asks in place of this question; the exchanges after it are dropped. */
  onAsk: (question: string) => void;
  /** Of the last one. */
  box?: Ref<HTMLElement>;
  onNext?: (question: string) => void;
}

function ExchangeView({ exchange, known, assistant, conversation, onAsk, onSearch, box, onNext }: ExchangeProps): JSX.Element {
  const { t } = useUi();
  const { question, answer } = exchange;
  const link = addressOf({ q: question, ...((known?.assistants?.length ?? 0) > 1 && assistant && { model: assistant.id }) });
  return (
    <article ref={box ?? null} class="da-exchange" aria-label={question.slice(0, 100)}>
      <Question question={question} onAsk={onAsk} />
      <AnswerView exchange={exchange} model={assistant?.id ?? ""} known={known}
        onAgain={() => onAsk(question)} onRated={(rating) => conversation.change(exchange.id, { rating })} onNext={onNext} onSearch={onSearch}>
        <CopyButton text={link} label={t.page.share[1]} icon="link">{t.page.share[0]}</CopyButton>
        {!!known?.keeps?.share_days && answer.state === "done" && answer.id && <ShareButton answer={answer} />}
      </AnswerView>
    </article>
  );
}

/** Tells screen readers when an answer begins and ends, not each word of it. */
function Announcement({ exchanges }: { exchanges: Exchange[] }): JSX.Element {
  const { t } = useUi();
  const answer = exchanges.at(-1)?.answer;
  const [asked, setAsked] = useState(false); // nothing is said of an old conversation
  const working = answer?.state === "waiting" || answer?.state === "writing";
  useEffect(() => {
    if (working) setAsked(true);
  }, [working]);
  const { thinking: waiting, started: writing, stopped, interrupted, finished } = t.chat;
  const said = { waiting, writing, stopped, interrupted, done: finished(answer ? shown(answer).sources.length : 0), failed: "" }; // a problem is an alert
  return <div class="da-hidden" role="status">{asked && answer && said[answer.state]}</div>;
}
