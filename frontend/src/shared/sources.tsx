/** The sources of an answer, one line each: a link to the section, and a button that shows what the answer took from it. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { PassageInPage, Source } from "../../api";
import { Icon } from "./icons";
import { useLoaded } from "./interface";
import { Link, path } from "./link";
import { Markdown, below, blockTexts } from "./markdown";
import { cells, marker, statements } from "./quotes";
import { languageName } from "./texts";
import type { Answer } from "./types";
import { useUi } from "./ui";

const FEWEST = 4; // words at each end of a sentence, by which a browser finds it

interface Props {
  answer: Answer;
  /** Those of its sources that are listed. */
  sources: Source[];
  /** The assistant, whose pages may be limited. */
  model: string;
  /** The number of the source whose passage is shown; 0 for none. */
  open: number;
  onOpen: (number: number) => void;
}

export function Sources({ answer, sources, model, open, onOpen }: Props): JSX.Element | null {
  const { t } = useUi();
  if (!sources.length) return null;
  const tagged = sources.some(({ language, translated_from }) => translated_from || language !== sources[0]!.language);
  return (
    <section class="da-sources" aria-label={t.sources.heading}>
      <h3 class="da-label">{t.sources.heading}</h3>
      <ol>
        {sources.map((source) => (
          <Card key={source.number} {...{ source, answer, model, tagged, onOpen }} open={open === source.number} />
        ))}
      </ol>
    </section>
  );
}

/** The sections that were found, each with its best sentence, while the answer is being written. */
export function Found({ sections }: { sections: Source[] }): JSX.Element {
  const { t } = useUi();
  return (
    <section class="da-sources" aria-label={t.sources.found}>
      <h3 class="da-label">{t.sources.found}</h3>
      <ol>
        {sections.map((source) => (
          <li key={source.number} class="da-card da-open">
            <Link class="da-card-link" href={marking(source)}>
              <span class="da-card-title" dir="auto">{nameOf(source)}</span> <span class="da-card-path">{source.sentence}</span>
            </Link>
          </li>
        ))}
      </ol>
    </section>
  );
}

interface CardProps extends Omit<Props, "open" | "sources"> {
  source: Source;
  /** Whether its language is worth a tag. */
  tagged: boolean;
  open: boolean;
}

function Card({ source, answer, model, tagged, open, onOpen }: CardProps): JSX.Element {
  const { t } = useUi();
  const button = useRef<HTMLButtonElement>(null);
  const was = useRef(open);
  useEffect(() => {
    if (open && !was.current) {
      button.current!.focus({ preventScroll: true });
      button.current!.closest("li")!.scrollIntoView({ block: "nearest" });
    }
    was.current = open;
  }, [open]);
  const name = nameOf(source);
  return (
    <li class={open ? "da-card da-open" : "da-card"}>
      <span class="da-number">{source.number}</span>
      <Link class="da-card-link" href={marking(source)}>
        <span class="da-card-title" dir="auto">{name}</span> <span class="da-card-path">{path(source.url)}</span>
      </Link>
      {tagged && <LanguageTag source={source} />}
      <button ref={button} type="button" class="da-icon-button" aria-expanded={open} aria-label={t.sources.show(name)}
        onClick={() => onOpen(open ? 0 : source.number)}>
        <Icon name="chevron" size={16} />
      </button>
      {open && <PassageView source={source} answer={answer} model={model} />}
    </li>
  );
}

export function nameOf({ title, section, url }: Source): string {
  return [title, section].filter(Boolean).join(" › ") || url;
}

/** The address of the section, which marks the sentence where the browser can. */
function marking({ url, sentence }: Source): string {
  const parts = cells(blockTexts(sentence ?? "").join(" ")).map((cell) => cell.split(/\s+/));
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.flat().length < FEWEST || !("fragmentDirective" in document)) return url;
  const part = (some: string[]): string => encodeURIComponent(some.join(" ")).replaceAll("-", "%2D");
  return `${url}${url.includes("#") ? "" : "#"}:~:text=${part(first.slice(0, FEWEST))},${part(last.slice(-FEWEST))}`;
}

function LanguageTag({ source: { language, translated_from: from } }: { source: Source }): JSX.Element | null {
  const { t, api } = useUi();
  if (!language) return null;
  const name = languageName(from || language, api.language || "en");
  return <span class="da-tag" title={from ? t.sources.translatedFrom(name) : t.sources.inLanguage(name)}>{from && `${from} → `}{language}</span>;
}

/** The passage around what is marked. */
function PassageView({ source, answer, model }: { source: Source; answer: Answer; model: string }): JSX.Element {
  const { api, t } = useUi();
  const { data: passage, problem: gone } = useLoaded<PassageInPage>(api, `v1/passages/${encodeURIComponent(source.chunk)}?model=${encodeURIComponent(model)}`);
  const { text, reading } = useMemo(() => {
    const { before = "", text: own = source.snippet, after = "" } = passage ?? {};
    const said = source.sentence ? cells(source.sentence) : statements(answer.text, source.number);
    const whole = `${before}\n\n${own}\n\n${after}`;
    // of a long passage, the section may be further away than the chunk after it; the snippet is of the section
    const section = [`${own}\n\n${after}`, whole, source.snippet].map((part) => below(source.section || source.title, part)).find(Boolean) ?? "";
    const tried = [section, own, whole].map((part) => {
      const texts = blockTexts(part);
      const mark = marker(said, texts, source.language);
      return { text: part, marked: texts.some((one) => mark(one).length), reading: { base: source.url, mark, fold: "" } };
    });
    return tried.find((one) => one.marked) ?? tried.find((one) => one.text)!;
  }, [passage, answer.text, source]);
  if (!passage && !gone) return <div class="da-passage da-muted">{t.sources.loading}</div>;
  return (
    <div class="da-passage" dir="auto" lang={source.language || undefined}>
      {gone?.kind === "missing" && <p class="da-muted">{t.sources.gone}</p>}
      <Markdown text={text.trim().replace(/^/gm, "> ")} reading={reading} />
    </div>
  );
}
