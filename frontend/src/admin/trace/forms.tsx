/** The forms that ask: for a question, with which choices, and what to ask with again. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { useJson, useAdmin } from "../data";
import { type Choices, FUSIONS, NUMBERS, type NumberName } from "./choices";

interface Prompt {
  file: string;
  text: string;
  changed: boolean;
}

/** A label with its field. */
function Field({ name, children }: { name: string; children: (id: string) => ComponentChildren }): JSX.Element {
  const id = useId();
  return <div class="tr-field"><label for={id}>{name}</label>{children(id)}</div>;
}

function Settings({ values, onChange }: { values: Record<string, string>; onChange: (values: Record<string, string>) => void }): JSX.Element {
  const { trace: t } = useAdmin();
  const set = (name: string, value: string) => {
    const { [name]: _, ...others } = values;
    onChange(value ? { ...others, [name]: value } : others);
  };
  return (
    <div class="tr-fields">
      {(Object.keys(NUMBERS) as NumberName[]).map((name) => (
        <Field key={name} name={t.numbers[name]}>
          {(id) => <input id={id} type="number" name={name} {...NUMBERS[name]} value={values[name] ?? ""} placeholder={t.usual} onInput={(event) => set(name, event.currentTarget.value)} />}
        </Field>
      ))}
      <Field name={t.fusion}>
        {(id) => (
          <select id={id} name="fusion" value={values["fusion"] ?? ""} onChange={(event) => set("fusion", event.currentTarget.value)}>
            <option value="">{t.usual}</option>
            {FUSIONS.map((one) => <option key={one}>{one}</option>)}
          </select>
        )}
      </Field>
    </div>
  );
}

function Assistant({ value, onChange }: { value: string; onChange: (model: string) => void }): JSX.Element {
  const { trace: t } = useAdmin();
  const { data } = useJson<{ data: { id: string; name: string }[] }>("v1/models");
  const known = data?.data ?? [];
  const all = value && !known.some((one) => one.id === value) ? [...known, { id: value, name: value }] : known;
  return (
    <Field name={t.assistant}>
      {(id) => (
        <select id={id} name="model" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{t.usual}</option>
          {all.map((one) => <option key={one.id} value={one.id}>{one.name === one.id ? one.id : `${one.name} (${one.id})`}</option>)}
        </select>
      )}
    </Field>
  );
}

export function AskForm({ question, choices, onAsk }: { question: string; choices: Choices; onAsk: (question: string, choices: Choices) => void }): JSX.Element {
  const { trace: t } = useAdmin();
  const [text, setText] = useState(question);
  const [chosen, setChosen] = useState(choices);
  useEffect(() => {
    setText(question);
    setChosen(choices);
  }, [question, JSON.stringify(choices)]);
  const send = (event: Event) => {
    event.preventDefault();
    if (text.trim()) onAsk(text.trim(), chosen);
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return (
    <form class="tr-form" onSubmit={send}>
      <div class="tr-asked">
        <Field name={t.question}>{(id) => <textarea id={id} name="q" rows={2} required value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={keyDown} />}</Field>
        <Assistant value={chosen.model} onChange={(model) => setChosen({ ...chosen, model })} />
        <button class="da-button da-primary">{t.ask}</button>
      </div>
      <details open={Object.keys(choices.settings).length > 0}>
        <summary>{t.settings}</summary>
        <Settings values={chosen.settings} onChange={(settings) => setChosen({ ...chosen, settings })} />
      </details>
    </form>
  );
}

interface AgainProps {
  choices: Choices;
  /** The language of the question, whose prompts come first. */
  language: string;
  onAsk: (choices: Choices) => void;
  onClose: (() => void) | null;
}

export function AgainForm({ choices, language, onAsk, onClose }: AgainProps): JSX.Element {
  const { trace: t } = useAdmin();
  const [chosen, setChosen] = useState(choices);
  const send = (event: Event) => {
    event.preventDefault();
    onAsk(chosen);
  };
  return (
    <section class="tr-again">
      <h2>{t.again}</h2>
      <p class="da-muted">{t.againText}</p>
      <form class="tr-form" onSubmit={send}>
        <Assistant value={chosen.model} onChange={(model) => setChosen({ ...chosen, model })} />
        <Settings values={chosen.settings} onChange={(settings) => setChosen({ ...chosen, settings })} />
        <PromptEditor prompts={chosen.prompts} language={language} onChange={(prompts) => setChosen({ ...chosen, prompts })} />
        <div class="tr-buttons">
          <button class="da-button da-primary">{t.askAgain}</button>
          {onClose && <button type="button" class="da-button" onClick={onClose}>{t.close}</button>}
        </div>
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
  const { data } = useJson<{ data: Prompt[] }>("v1/admin/prompts");
  const [file, setFile] = useState(Object.keys(prompts)[0] ?? "");
  const own = (one: Prompt) => (one.file.startsWith(`${language}/`) ? 0 : 1);
  const known = [...(data?.data ?? [])].sort((a, b) => own(a) - own(b) || a.file.localeCompare(b.file));
  const original = known.find((one) => one.file === file)?.text ?? "";
  const edit = (text: string) => {
    const { [file]: _, ...others } = prompts;
    onChange(text === original ? others : { ...others, [file]: text });
  };
  return (
    <>
      <Field name={t.prompt}>
        {(id) => (
          <select id={id} name="prompt" value={file} onChange={(event) => setFile(event.currentTarget.value)}>
            <option value="">{t.noPrompt}</option>
            {known.map((one) => <option key={one.file} value={one.file}>{one.file}{one.file in prompts ? ` (${t.changed})` : ""}</option>)}
          </select>
        )}
      </Field>
      {file && (
        <Field name={t.promptText(file)}>
          {(id) => <textarea id={id} class="tr-prompt" rows={14} spellcheck={false} value={prompts[file] ?? original} onInput={(event) => edit(event.currentTarget.value)} />}
        </Field>
      )}
      {file && <p class="da-muted">{t.promptNote}</p>}
    </>
  );
}
