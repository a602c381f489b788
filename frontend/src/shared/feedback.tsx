/** Two thumbs and a comment about an answer. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { asApiError } from "./api";
import { IconButton } from "./icons";
import type { Answer, Rating } from "./types";
import { useUi } from "./ui";

interface Props {
  answer: Answer;
  /** Without a rating, it was taken back. */
  onRated: (rating: Rating | undefined) => void;
  /** What else helps, beside the reasons of a thumb down. */
  children?: ComponentChildren;
}

export function Feedback({ answer, onRated, children }: Props): JSX.Element {
  const { api, t } = useUi();
  const [asking, setAsking] = useState(false);
  const [said, setSaid] = useState("");
  const path = `v1/answers/${encodeURIComponent(answer.id)}/feedback`;
  const send = async (rating: Rating | undefined, comment = "") => {
    try {
      const call = rating ? { method: "POST", body: { rating, ...(comment && { comment }) } } : { method: "DELETE" };
      await api.json(path, call);
      onRated(rating);
      setSaid(rating ? t.feedback.thanks : "");
      setAsking(rating !== undefined && !comment);
    } catch (error) {
      const { kind } = asApiError(error);
      setSaid(kind === "missing" || kind === "refused" ? t.feedback.off : t.feedback.failed);
    }
  };
  const thumb = (rating: Rating) => (
    <IconButton icon={rating} label={t.feedback[rating]} aria-pressed={answer.rating === rating}
      onClick={() => send(answer.rating === rating ? undefined : rating)} />
  );
  return (
    <>
      <span class="da-thumbs" role="group" aria-label={t.feedback.label}>{thumb("up")}{thumb("down")}</span>
      <span class="da-muted" role="status">{said}</span>
      {asking && answer.rating && (
        <Comment reasons={answer.rating === "down" ? t.feedback.reasons : []} onSend={(comment) => send(answer.rating, comment)} onSkip={() => setAsking(false)}>
          {answer.rating === "down" && children}
        </Comment>
      )}
    </>
  );
}

interface CommentProps {
  reasons: string[];
  onSend: (comment: string) => void;
  onSkip: () => void;
  children: ComponentChildren;
}

/** Each of the `reasons` is sent by one click, before what was written. */
function Comment({ reasons, onSend, onSkip, children }: CommentProps): JSX.Element {
  const { t } = useUi();
  const field = useRef<HTMLTextAreaElement>(null);
  const send = (event: Event) => {
    event.preventDefault();
    const comment = field.current!.value.trim();
    if (comment) onSend(comment);
    else onSkip();
  };
  return (
    <form class="da-comment" onSubmit={send}>
      {reasons.map((reason) => (
        <button key={reason} type="button" class="da-button" onClick={() => onSend(`${reason}. ${field.current!.value}`.trim())}>{reason}</button>
      ))}
      <textarea ref={field} rows={2} maxLength={2000} aria-label={t.feedback.comment} placeholder={t.feedback.comment} />
      <button class="da-button">{t.chat.send}</button>
      <button type="button" class="da-button da-plain" onClick={onSkip}>{t.feedback.skip}</button>
      {children}
    </form>
  );
}
