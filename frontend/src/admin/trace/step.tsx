/** One step: its calls to models with the prompts as they were sent, its input and its output. */
import type { JSX } from "preact";
import type { TraceCall, TraceStep } from "../../../api";
import { CopyButton } from "../../shared/copy";
import { useAdmin } from "../data";

export function StepDetails({ step, first, names }: { step: TraceStep; first: number | null; names: Map<string, string> }): JSX.Element {
  const { t: { problems }, trace: t, ms } = useAdmin();
  return (
    <div class="tr-details">
      {step.error && <p class="tr-problem"><strong>{problems.severity.error}:</strong> {step.error}</p>}
      {first !== null && <p class="da-muted">{t.firstText}: {ms(first)} ms</p>}
      {step.calls.map((call, i) => <CallDetails key={i} call={call} />)}
      <Values name={t.input} values={step.input} names={names} />
      <Values name={t.output} values={step.output} names={names} />
    </div>
  );
}

function CallDetails({ call }: { call: TraceCall }): JSX.Element {
  const { t: { problems }, trace: t, ms, number } = useAdmin();
  const facts = [
    t.callFacts(call.model, ms(call.start), ms(call.end)),
    call.kind === "chat" && t.tokens(number(call.prompt_tokens), number(call.completion_tokens)),
    call.temperature !== null && call.kind === "chat" && t.temperature(call.temperature),
  ].filter(Boolean);
  return (
    <section class="tr-called" aria-label={t.call[call.kind]}>
      <h3><span class={`tr-dot tr-${call.kind}`} aria-hidden="true" />{t.call[call.kind]}</h3>
      <p class="da-muted">{facts.join(" · ")}</p>
      {call.error && <p class="tr-problem"><strong>{problems.severity.error}:</strong> {call.error}</p>}
      {call.messages.map((message, i) => <Sent key={i} name={t.sent(message.role)} text={message.content} />)}
      {call.texts.length > 0 && <Sent name={t.embedded} text={call.texts.join("\n\n---\n\n")} />}
      {call.reply && <Sent name={t.reply} text={call.reply} />}
    </section>
  );
}

/** A text exactly as it is, with a button that copies it. */
export function Sent({ name, text }: { name: string; text: string }): JSX.Element {
  const { trace: t } = useAdmin();
  return (
    <div class="tr-sent">
      <div class="tr-sent-head"><span>{name}</span><CopyButton text={text} label={t.copy(name)} /></div>
      <pre class="ad-source ad-box" tabIndex={0} role="group" aria-label={name}>{text}</pre>
    </div>
  );
}

function Values({ name, values, names }: { name: string; values: Record<string, unknown>; names: Map<string, string> }): JSX.Element | null {
  const fields = Object.entries(values);
  if (!fields.length) return null;
  const text = fields.map(([field, value]) => `${field}: ${JSON.stringify(value, null, 2)}`).join("\n");
  return (
    <details>
      <summary>{name} <span class="da-muted">{fields.map(([field]) => field).join(", ")}</span></summary>
      <pre class="ad-source ad-box" tabIndex={0} role="group" aria-label={name}>{text.replace(/[0-9a-f]{64}/g, (id) => names.get(id) ?? id)}</pre>
    </details>
  );
}
