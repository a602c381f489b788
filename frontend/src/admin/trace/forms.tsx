/** The forms that ask: for a question, with which choices, and what to ask with again. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PromptList } from "../../../api";
import { useUi } from "../../shared/ui";
import { submitted, useAdmin, useJson } from "../data";
import { type Choices, FUSIONS, NUMBERS, type NumberName, choicesIn } from "./choices";

/** The fields have these values first. */
function Settings({ values }: { values: Record<string, string> }): JSX.Element {
  const { trace: t } = useAdmin();
  return (
    <div class="tr-fields">
      {(Object.keys(NUMBERS) as NumberName[]).map((name) => (
        <label key={name} class="tr-field">
          {t.numbers[name]}<input type="number" name={name} {...NUMBERS[name]} defaultValue={values[name] ?? ""} placeholder={t.usual} />
        </label>
      ))}
      <label class="tr-field">
        {t.fusion}
        <select name="fusion">
          <option value="">{t.usual}</option>
          {FUSIONS.map((one) => <option key={one} selected={one === values["fusion"]}>{one}</option>)}
        </select>
      </label>
    </div>
  );
}

function Assistant({ value }: { value: string }): JSX.Element {
  const { t: ui } = useUi();
  const { trace: t } = useAdmin();
  const { data } = useJson<{ data: { id: string; name: string }[] }>("v1/models");
  const known = data?.data ?? [];
  const all = value && !known.some((one) => one.id === value) ? [...known, { id: value, name: value }] : known;
  return (
    <label class="tr-field">
      {ui.page.assistant}
      <select name="model">
        <option value="">{t.usual}</option>
        {all.map((one) => <option key={one.id} value={one.id} selected={one.id === value}>{one.name === one.id ? one.id : `${one.name} (${one.id})`}</option>)}
      </select>
    </label>
  );
}

export function AskForm({ question, choices, onAsk }: { question: string; choices: Choices; onAsk: (question: string, choices: Choices) => void }): JSX.Element {
  const { trace: t } = useAdmin();
  const [text, setText] = useState(question);
  useEffect(() => setText(question), [question]);
  const send = (event: Event) => {
    const { form } = submitted(event);
    if (text.trim()) onAsk(text.trim(), choicesIn(form, {}, false));
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    (event.currentTarget as HTMLTextAreaElement).form!.requestSubmit();
  };
  return (
    <form class="tr-form" onSubmit={send}>
      <div class="tr-asked">
        <label class="tr-field">{t.question}<textarea rows={2} required value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={keyDown} /></label>
        <Assistant key={choices.model} value={choices.model} />
        <button class="da-button da-primary">{t.ask}</button>
      </div>
      <details key={JSON.stringify(choices)} open={Object.keys(choices.settings).length > 0}>
        <summary>{t.settings}</summary>
        <Settings values={choices.settings} />
      </details>
    </form>
  );
}

interface AgainProps {
  choices: Choices;
  /** The language of the question, whose prompts come first. */
  language: string;
  onAsk: (choices: Choices) => void;
}

export function AgainForm({ choices, language, onAsk }: AgainProps): JSX.Element {
  const { t: ui } = useUi();
  const { trace: t } = useAdmin();
  const [prompts, setPrompts] = useState(choices.prompts);
  return (
    <section class="tr-again">
      <h2>{t.again}</h2>
      <p class="da-muted">{t.againText}</p>
      <form class="tr-form" onSubmit={(event) => onAsk(choicesIn(submitted(event).form, prompts, false))}>
        <Assistant value={choices.model} />
        <Settings values={choices.settings} />
        <PromptEditor prompts={prompts} language={language} onChange={setPrompts} />
        <div class="tr-parts"><button class="da-button da-primary">{ui.chat.again}</button></div>
      </form>
    </section>
  );
}

interface EditorProps {
  prompts: Record<string, string>;
  language: string;
  onChange: (prompts: Record<string, string>) => void;
}

function PromptEditor({ prompts, language, onChange }: EditorProps): JSX.Element {
  const { trace: t } = useAdmin();
  const { data } = useJson<PromptList>("v1/admin/prompts");
  const [file, setFile] = useState(Object.keys(prompts)[0] ?? "");
  const own = (name: string) => (name.startsWith(`${language}/`) ? 0 : 1);
  const known = [...(data?.data ?? [])].sort((a, b) => own(a.file) - own(b.file) || a.file.localeCompare(b.file));
  const original = known.find((one) => one.file === file)?.text ?? "";
  const edit = (text: string) => {
    const { [file]: _, ...others } = prompts;
    onChange(text === original ? others : { ...others, [file]: text });
  };
  return (
    <>
      <label class="tr-field">
        {t.prompt}
        <select value={file} onChange={(event) => setFile(event.currentTarget.value)}>
          <option value="">{t.noPrompt}</option>
          {known.map((one) => <option key={one.file} value={one.file}>{one.file}{one.file in prompts ? ` (${t.changed})` : ""}</option>)}
        </select>
      </label>
      {file && (
        <>
          <label class="tr-field">
            {t.promptText(file)}
            <textarea class="tr-prompt" rows={14} spellcheck={false} value={prompts[file] ?? original} onInput={(event) => edit(event.currentTarget.value)} />
          </label>
          <p class="da-muted">{t.promptNote}</p>
        </>
      )}
    </>
  );
}
