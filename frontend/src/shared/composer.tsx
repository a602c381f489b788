/** The field for a question. Enter sends, Shift+Enter starts a new line, Escape stops the answer. */
import type { JSX, RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons";
import { useUi } from "./ui";

interface Props {
  busy: boolean;
  followUp: boolean;
  onAsk: (question: string) => void;
  onStop: () => void;
  /** Gets the text field, to focus it. */
  field: RefObject<HTMLTextAreaElement | null>;
}

export function Composer({ busy, followUp, onAsk, onStop, field }: Props): JSX.Element {
  const { t } = useUi();
  const [text, setText] = useState("");
  useEffect(() => grow(field.current!), [text]);
  const ask = () => {
    if (!text.trim() || busy) return;
    onAsk(text.trim());
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return; // Enter ends a word of Chinese or Japanese
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      ask();
    }
    if (event.key === "Escape" && busy) onStop();
  };
  return (
    <form class="da-composer" onSubmit={(event) => { event.preventDefault(); ask(); }}>
      <textarea ref={field} rows={1} dir="auto" value={text} onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown} aria-label={t.chat.question} title={t.chat.hint} enterkeyhint="send"
        placeholder={followUp ? t.chat.followUp : t.chat.placeholder} />
      {busy ? (
        <button type="button" class="da-send da-stop" title="Esc" onClick={onStop}>
          <Icon name="stop" size={16} /> {t.chat.stop}
        </button>
      ) : (
        <button class="da-send" aria-label={t.chat.send} title={t.chat.send} disabled={!text.trim()}>
          <Icon name="send" />
        </button>
      )}
    </form>
  );
}

function grow(field: HTMLTextAreaElement): void {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
