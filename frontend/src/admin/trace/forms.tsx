/** The forms that ask: for a question, with which choices, and what to ask with again. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PromptList } from "../../../api";
import { useUi } from "../../shared/ui";
import { Select, submitted, useAdmin, useJson } from "../data";
import { type Choices, FUSIONS, NUMBERS, type NumberName, choicesIn } from "./choices";

/** The fields have these values first. */
function Settings({ values }: { values: Record<string, string> }): JSX.Element {
  const { trace: t } = useAdmin();
  return (
    <div class="tr-fields">
      {(Object.keys(NUMBERS) as NumberName[]).map((name) => (
        <label key={name} class="ad-field">
          {t.numbers[name]}<input type="number" name={name} {...NUMBERS[name]} defaultValue={values[name] ?? ""} placeholder={t.usual} />
        </label>
      ))}
      <Select label={t.fusion} name="fusion" options={FUSIONS.map((one) => [one, one])} none={t.usual} value={values["fusion"] ?? ""} />
    </div>
  );
}

function Assistant({ value }: { value: string }): JSX.Element {
  const { t: ui } = useUi();
  const { trace: t } = useAdmin();
  const { data } = useJson<{ data: { id: string; name: string }[] }>("v1/models");
  const known = (data?.data ?? []).map(({ id, name }): [string, string] => [id, name === id ? id : `${name} (${id})`]);
  return <Select label={ui.page.assistant} name="model" options={known} none={t.usual} value={value} />;
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
    <form class="ad-form" onSubmit={send}>
      <div class="tr-asked">
        <label class="ad-field">{t.question}<textarea rows={2} required value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={keyDown} /></label>
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

/** `language` is that of the question, whose prompts come first. */
export function AgainForm({ choices, language, onAsk }: { choices: Choices; language: string; onAsk: (choices: Choices) => void }): JSX.Element {
  const { t: ui } = useUi();
  const { trace: t } = useAdmin();
  const [prompts, setPrompts] = useState(choices.prompts);
  return (
    <section class="ad-start">
      <h2>{t.again}</h2>
      <p class="da-muted">{t.againText}</p>
      <form class="ad-form" onSubmit={(event) => onAsk(choicesIn(submitted(event).form, prompts, false))}>
        <Assistant value={choices.model} />
        <Settings values={choices.settings} />
        <PromptEditor prompts={prompts} language={language} onChange={setPrompts} />
        <button class="da-button da-primary">{ui.chat.again}</button>
      </form>
    </section>
  );
}

function PromptEditor({ prompts, language, onChange }: { prompts: Record<string, string>; language: string; onChange: (prompts: Record<string, string>) => void }): JSX.Element {
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
      <Select
        label={t.prompt}
        options={known.map((one) => [one.file, one.file + (one.file in prompts ? ` (${t.changed})` : "")])}
        none={t.noPrompt}
        value={file}
        onChoose={setFile}
      />
      {file && (
        <>
          <label class="ad-field">
            {t.promptText(file)}
            <textarea class="tr-prompt" rows={14} spellcheck={false} value={prompts[file] ?? original} onInput={(event) => edit(event.currentTarget.value)} />
          </label>
          <p class="da-muted">{t.promptNote}</p>
        </>
      )}
    </>
  );
}
