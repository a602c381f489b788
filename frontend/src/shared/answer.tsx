/** An answer with everything around it: status, text, notes, sources, and what one can do with it. */
import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { InterfaceBody, Source } from "../../api";
import { CopyButton } from "./copy";
import { doubtsOf } from "./doubt";
import { Feedback } from "./feedback";
import { IconButton } from "./icons";
import { Markdown, blockTexts } from "./markdown";
import { Problem } from "./problems";
import { cells, marker } from "./quotes";
import { Found, Sources, nameOf } from "./sources";
import type { Texts } from "./texts";
import type { Answer, Exchange, Rating } from "./types";
import { useUi } from "./ui";

const QUOTATION = /^.+\n\n\*.+\* \[\d+\]\n\n>/; // how an answer without a model begins
const RELATED = /^(- \[.*?\]\(\S+?\)) \[\d+\](?= – |$)/gm; // its links to further sections
const FURTHER = /\n\n[^>\n].*\n\n(?=- \[.*?\]\(\S+?\) \[\d+\])/; // where these begin
const MAILED = 1000; // characters of the answer: programs for mail take short addresses only

interface Props {
  exchange: Exchange;
  model: string;
  /** What the service says of itself. */
  known: InterfaceBody | null;
  onAgain?: () => void;
  onRated?: (rating: Rating | undefined) => void;
  /** Asks one of the questions that follow, which are shown with it only. */
  onNext?: ((question: string) => void) | undefined;
  /** Searches for the words of a question that has no answer. */
  onSearch?: ((words: string) => void) | undefined;
  /** More buttons. */
  children?: ComponentChildren;
}

export function AnswerView({ exchange, model, known, onAgain, onRated, onNext, onSearch, children }: Props): JSX.Element {
  const { t } = useUi();
  const { answer } = exchange;
  const [open, setOpen] = useState(0);
  const best = answer.sources[0]?.sentence; // of a quotation
  const { quotes, text, further, sources } = shown(answer);
  const reading = useMemo(() => {
    const cite = (number: number) => citation(number, answer.sources, t.sources.source, setOpen);
    const quoted = answer.text.match(/^>.*/gm)?.join("\n") ?? answer.text;
    const fold = quotes ? (best ?? "") : undefined;
    if (best) return { cite, fold, mark: marker(cells(best), blockTexts(quoted), answer.sources[0]!.language) };
    return { cite, fold, ...doubtsOf(answer) };
  }, [answer.sources, best && answer.text, answer.state, quotes]);
  const person = known?.contact && <Person contact={known.contact} exchange={exchange} />;
  const notes = [answer.state === "stopped" && t.chat.stopped, answer.state === "interrupted" && t.chat.interrupted, answer.cut && t.chat.cut];
  const writing = answer.state === "waiting" || answer.state === "writing";
  return (
    <div class="da-answer" aria-busy={writing}>
      {answer.state === "waiting" && <p class="da-status"><span class="da-spinner" aria-hidden="true" />{answer.status || t.chat.thinking}</p>}
      {answer.text && <Markdown text={text} reading={reading} />}
      {notes.map((note) => note && <p key={note} class="da-note">{note}</p>)}
      {answer.verbatim && !quotes && <p class="da-verbatim">{t.doubts.verbatim(answer.verbatim.found, answer.verbatim.statements)}</p>}
      {answer.problem && <Problem problem={answer.problem} onRetry={onAgain} />}
      {writing && answer.found && <Found sections={answer.found} />}
      <Sources {...{ answer, sources, model, open }} onOpen={setOpen} />
      {answer.refused && onSearch && <button type="button" class="da-button" onClick={() => onSearch(exchange.question)}>{t.chat.searchWords}</button>}
      {answer.refused && person}
      {!writing && (
        <div class="da-actions">
          {answer.text && <CopyButton text={asMarkdown(answer, t.sources.heading)} label={t.chat.copyAnswer} />}
          {!answer.problem && onAgain && <IconButton icon="again" label={t.chat.again} onClick={onAgain} />}
          {children}
          {known?.keeps?.feedback && answer.id && answer.text && onRated && <Feedback answer={answer} onRated={onRated}>{person}</Feedback>}
        </div>
      )}
      {further && <Markdown text={further} reading={reading} />}
      {onNext && !!answer.follow_ups?.length && (
        <section class="da-next">
          <h3 class="da-label">{t.chat.next}</h3>
          <Questions label={t.chat.next} questions={answer.follow_ups} onAsk={onNext} />
        </section>
      )}
    </div>
  );
}

/** What is shown of an answer: one that quotes says itself how sure it is, and links below its sources to what it doesn't quote. */
export function shown({ text, sources }: Answer) {
  const quotes = QUOTATION.test(text);
  if (!quotes) return { quotes, text, further: "", sources };
  const linked = text.replace(RELATED, "$1");
  const at = text.search(FURTHER);
  const [answered, further] = at < 0 ? [linked, ""] : [text.slice(0, at), linked.slice(at)];
  return { quotes, text: answered, further, sources: sources.filter(({ number }) => linked.includes(`[${number}]`)) };
}

/** Questions that a click asks; nothing without any. */
export function Questions({ label, questions, onAsk }: { label: string; questions: readonly string[]; onAsk: (question: string) => void }): JSX.Element | null {
  if (!questions.length) return null;
  return (
    <ul class="da-questions" aria-label={label}>
      {questions.map((question) => <li key={question}><button type="button" onClick={() => onAsk(question)}>{question}</button></li>)}
    </ul>
  );
}

/** A link to the people whom the operators name, or a mail to them that says what it is about. */
function Person({ contact, exchange: { question, answer } }: { contact: string; exchange: Exchange }): JSX.Element {
  const { t } = useUi();
  const told = `${question}\n\n${asMarkdown({ ...answer, text: answer.text.slice(0, MAILED) }, t.sources.heading)}`;
  const mail = `mailto:${contact}?subject=${encodeURIComponent(question.slice(0, 80))}&body=${encodeURIComponent(told)}`;
  return <a class="da-button" href={contact.includes(":") ? contact : mail} target="_blank" rel="noopener">{t.chat.person}</a>;
}

/** A button that opens the source. Until the sources are there, the number alone. */
function citation(number: number, sources: Source[], label: Texts["sources"]["source"], open: (number: number) => void): ComponentChildren {
  const source = sources.find((one) => one.number === number);
  if (!source) return sources.length ? null : <span class="da-cite">{number}</span>;
  const title = nameOf(source);
  return <button type="button" class="da-cite" title={title} aria-label={label(number, title)} onClick={() => open(number)}>{number}</button>;
}

/** The answer with its sources, to paste elsewhere. */
export function asMarkdown(answer: Answer, heading: string): string {
  const lines = answer.sources.map(({ number, title, section, url }) => {
    const name = ([title, section].filter(Boolean).join(" – ") || url).replace(/[[\]\\]/g, "\\$&");
    return `${number}. [${name}](<${url}>)`;
  });
  return lines.length ? `${answer.text.trim()}\n\n**${heading}**\n\n${lines.join("\n")}\n` : `${answer.text.trim()}\n`;
}
