/** The sources of an answer as cards. An open one shows its passage, with what the answer took from it marked. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PassageInPage, Source } from "../../api";
import { asApiError } from "./api";
import { Icon } from "./icons";
import { Link } from "./link";
import { Markdown, blockTexts } from "./markdown";
import { marker, statements } from "./quotes";
import { languageName } from "./texts";
import type { Answer } from "./types";
import { useUi } from "./ui";

interface Props {
  answer: Answer;
  /** The assistant, whose pages may be limited. */
  model: string;
  /** The number of the open card; 0 if none is. */
  open: number;
  onOpen: (number: number) => void;
}

export function Sources({ answer, model, open, onOpen }: Props): JSX.Element | null {
  const { t } = useUi();
  if (!answer.sources.length) return null;
  return (
    <section class="da-sources" aria-label={t.sources.heading}>
      <h3 class="da-label">{t.sources.heading}</h3>
      <ol>
        {answer.sources.map((source) => (
          <Card key={source.number} {...{ source, answer, model, onOpen }} open={open === source.number} />
        ))}
      </ol>
    </section>
  );
}

interface CardProps extends Omit<Props, "open"> {
  source: Source;
  open: boolean;
}

function Card({ source, answer, model, open, onOpen }: CardProps): JSX.Element {
  const { t } = useUi();
  const button = useRef<HTMLButtonElement>(null);
  const was = useRef(open);
  useEffect(() => {
    if (open && !was.current) button.current?.focus({ preventScroll: true });
    was.current = open;
  }, [open]);
  const title = source.title || source.url;
  return (
    <li class={open ? "da-card da-open" : "da-card"}>
      <button ref={button} type="button" aria-expanded={open} onClick={() => onOpen(open ? 0 : source.number)}>
        <span class="da-number">{source.number}</span>
        <span class="da-card-text">
          <span class="da-card-title">{title}</span>
          <span class="da-card-section">{source.section || t.sources.start}</span>
        </span>
        <LanguageTag source={source} />
        <Icon name="chevron" size={16} />
      </button>
      {open && <PassageView source={source} answer={answer} model={model} />}
      {open && (
        <Link class="da-card-link" href={source.url}>{t.sources.open} <Icon name="out" size={15} /></Link>
      )}
    </li>
  );
}

function LanguageTag({ source }: { source: Source }): JSX.Element | null {
  const { t, api } = useUi();
  const name = (code: string) => languageName(code, api.language || "en");
  if (source.translated_from) {
    const said = t.sources.translatedFrom(name(source.translated_from));
    return <span class="da-tag" title={said}>{source.translated_from} → {source.language}</span>;
  }
  return source.language ? <span class="da-tag" title={t.sources.inLanguage(name(source.language))}>{source.language}</span> : null;
}

function PassageView({ source, answer, model }: { source: Source; answer: Answer; model: string }): JSX.Element {
  const { t } = useUi();
  const { passage, gone } = usePassage(source, model);
  const box = useRef<HTMLDivElement>(null);
  const text = passage ? [passage.before, passage.text, passage.after].filter(Boolean).join("\n\n") : source.snippet;
  const reading = useMemo(() => {
    const said = source.sentence ? [source.sentence] : statements(answer.text, source.number);
    return { base: source.url, mark: marker(said, blockTexts(text), source.language) };
  }, [text, answer.text, source.number]);
  useEffect(() => {
    const frame = box.current!;
    const quoted = frame.querySelector("mark");
    frame.closest("li")!.scrollIntoView({ block: "nearest" });
    if (quoted) frame.scrollTop += quoted.getBoundingClientRect().top - frame.getBoundingClientRect().top - 40;
  }, [reading, passage]);
  if (!passage && !gone) return <div class="da-passage da-muted" ref={box}>{t.sources.loading}</div>;
  return (
    <>
      {gone && <p class="da-muted da-passage-note">{t.sources.gone}</p>}
      <div class="da-passage" ref={box} tabIndex={0} role="region" aria-label={source.title} lang={source.language || undefined}>
        <Markdown text={text} reading={reading} />
      </div>
    </>
  );
}

function usePassage(source: Source, model: string): { passage: PassageInPage | null; gone: boolean } {
  const { api } = useUi();
  const [found, setFound] = useState<{ passage: PassageInPage | null; gone: boolean }>({ passage: null, gone: false });
  useEffect(() => {
    const stopper = new AbortController();
    const path = `v1/passages/${encodeURIComponent(source.chunk)}?model=${encodeURIComponent(model)}`;
    api.json<PassageInPage>(path, { signal: stopper.signal }).then(
      (passage) => setFound({ passage, gone: false }),
      (error: unknown) => {
        if (!stopper.signal.aborted && asApiError(error)) setFound({ passage: null, gone: true });
      },
    );
    return () => stopper.abort();
  }, [source.chunk, model]);
  return found;
}
