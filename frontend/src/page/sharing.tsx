/** An answer that its reader shares, and how those who have the link see it. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { AnswerLink, SharedAnswer } from "../../api";
import { AnswerView } from "../shared/answer";
import { asApiError } from "../shared/api";
import { copied } from "../shared/copy";
import { Icon } from "../shared/icons";
import { useLoaded } from "../shared/interface";
import { Problem, words } from "../shared/problems";
import type { Answer } from "../shared/types";
import { useUi } from "../shared/ui";
import { type Address, addressOf } from "./address";
import { Going } from "./header";

const day = (seconds: number, language: string) => new Date(seconds * 1000).toLocaleDateString(language, { dateStyle: "long" });

/** Copies a link to the answer, and says who may read it until when; where the browser doesn't copy, the link is shown. */
export function ShareButton({ answer }: { answer: Answer }): JSX.Element {
  const { api, t } = useUi();
  const [said, setSaid] = useState("");
  const share = async ({ currentTarget: button }: { currentTarget: HTMLElement }) => {
    try {
      const { token, until } = await api.json<AnswerLink>(`v1/answers/${encodeURIComponent(answer.id)}/link`, { method: "POST" });
      const url = addressOf({ shared: token });
      setSaid(t.page.shared.made((await copied(url, button)) ? "" : url, day(until, api.language)));
    } catch (error) {
      const problem = asApiError(error);
      setSaid(problem.kind === "missing" ? t.page.shared.gone[1] : words(problem, t)[0]);
    }
  };
  return <><button type="button" class="da-icon-button" title={t.page.shared.share[1]} aria-label={t.page.shared.share[1]} onClick={share}><Icon name="link" />{t.page.shared.share[0]}</button><span class="da-muted da-link-made" role="status">{said}</span></>;
}

/** The answer of a link, which nobody can change or rate here. */
export function Shared({ token, onGo }: { token: string; onGo: (to: Address) => void }): JSX.Element {
  const { api, t } = useUi();
  const { data: shared, problem, reload } = useLoaded<SharedAnswer>(api, `v1/shared/${encodeURIComponent(token)}`);
  const exchange = useMemo(() => {
    const { question = "", answer: text = "", sources = [], unsupported = [], verbatim } = shared ?? {};
    const answer: Answer = { id: "", state: "done", status: "", cut: false, text, sources, ...(verbatim && { verbatim }), ...(unsupported.length && { unsupported }) };
    return { id: token, question, answer };
  }, [shared]);
  const gone = problem?.kind === "missing";
  return (
    <main class="da-column da-shared" id="da-main" tabIndex={-1}>
      {problem && <Problem problem={problem} {...(gone ? { said: t.page.shared.gone } : { onRetry: reload })} />}
      {shared && (
        <article class="da-exchange" lang={shared.language || undefined}>
          <p class="da-note" lang={api.language}>{t.page.shared.note(day(shared.created_at, api.language), day(shared.until, api.language))}</p>
          <div class="da-question"><h1>{shared.question}</h1></div>
          <AnswerView exchange={exchange} model={shared.assistant} known={null} />
        </article>
      )}
      {(shared || gone) && <Going to={{}} onGo={onGo} class="da-button da-primary">{t.page.shared.own}</Going>}
    </main>
  );
}
