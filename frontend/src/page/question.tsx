/** A question as it was asked, which can be edited and asked anew. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "../shared/icons";
import { useUi } from "../shared/ui";

const LONG = 600; // characters, from which on a question may have to be scrolled

interface Props {
  question: string;
  onAsk: (question: string) => void;
}

export function Question({ question, onAsk }: Props): JSX.Element {
  const { t } = useUi();
  const [editing, setEditing] = useState(false);
  if (editing) return <Editing question={question} onAsk={onAsk} onEnd={() => setEditing(false)} />;
  return (
    <div class="da-question">
      <IconButton icon="edit" size={16} label={t.page.edit} onClick={() => setEditing(true)} />
      <h2 tabIndex={question.length > LONG ? 0 : -1}><span class="da-hidden">{t.page.you}: </span><bdi>{question}</bdi></h2>
    </div>
  );
}

function Editing({ question, onAsk, onEnd }: Props & { onEnd: () => void }): JSX.Element {
  const { t } = useUi();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current!.focus();
    field.current!.setSelectionRange(question.length, question.length);
  }, []);
  const send = (event: Event) => {
    event.preventDefault();
    const text = field.current!.value.trim();
    onEnd();
    if (text) onAsk(text);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) send(event);
    if (event.key === "Escape") onEnd();
  };
  return (
    <form class="da-editing" onSubmit={send}>
      <textarea ref={field} rows={3} dir="auto" aria-label={t.chat.question} defaultValue={question} onKeyDown={pressed} />
      <button type="button" class="da-button da-plain" onClick={onEnd}>{t.page.cancel}</button>
      <button class="da-button da-primary">{t.page.askInstead}</button>
    </form>
  );
}
