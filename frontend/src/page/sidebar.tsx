/** The conversations kept in this browser. On a phone it is a drawer. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { asMarkdown } from "../shared/answer";
import { type History, type Kept, type KeptConversation, LONGEST_TITLE } from "../shared/history";
import { Icon, IconButton } from "../shared/icons";
import { useUi } from "../shared/ui";
import type { Address } from "./address";
import { Going } from "./header";

const MANY = 6; // chats, from which on they can be searched

interface Props {
  history: History;
  current: string;
  /** How many days the service keeps questions and answers. */
  days: number;
  /** Whether the drawer is open. */
  open: boolean;
  onClose: () => void;
  onGo: (to: Address) => void;
}

export function Sidebar({ history, current, days, open, onClose, onGo }: Props): JSX.Element {
  const { t } = useUi();
  const [words, setWords] = useState("");
  const [kept, setKept] = useState(() => history.list());
  const drawer = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    setKept(history.list(words));
    return history.onChange(() => setKept(history.list(words)));
  }, [history, words]);
  useEffect(() => {
    if (open) drawer.current?.showModal();
    else drawer.current?.close();
  }, [open]);
  const go = (to: Address) => {
    onClose();
    onGo(to);
  };
  const remove = (ids: string[]) => {
    for (const id of ids) history.remove(id);
    if (ids.includes(current)) onGo({});
  };
  const list = <Chats {...{ history, kept, current, days, words }} onWords={setWords} onGo={go} onRemove={remove} />;
  return (
    <>
      <nav class="da-sidebar" aria-label={t.page.chats}>{list}</nav>
      <dialog class="da-drawer" ref={drawer} aria-label={t.page.chats} onClose={onClose}
        onClick={(event) => event.target === drawer.current && onClose()}>
        <IconButton icon="close" label={t.widget.close} onClick={onClose} />
        {open && list}
      </dialog>
    </>
  );
}

interface ChatsProps extends Omit<Props, "open" | "onClose"> {
  kept: Kept[];
  /** What the chats are searched for. */
  words: string;
  onWords: (words: string) => void;
  onRemove: (ids: string[]) => void;
}

function Chats({ history, kept, current, days, words, onWords, onGo, onRemove }: ChatsProps): JSX.Element {
  const { t } = useUi();
  const [sure, setSure] = useState(false);
  const [renamed, setRenamed] = useState("");
  const removeAll = () => {
    if (sure) onRemove(kept.map(({ id }) => id));
    setSure(!sure);
  };
  /** All of them for the chat that is shown, else only the last one. */
  const buttons = ({ id, title }: Kept) => ([
    ["edit", "rename", () => setRenamed(id)],
    ["save", "save", () => save(history.get(id), t.sources.heading)],
    ["trash", "remove", () => onRemove([id])],
  ] as const).slice(id === current ? 0 : -1).map(([icon, name, onClick]) => (
    <IconButton key={icon} icon={icon} size={16} label={t.page[name](title)} onClick={onClick} />
  ));
  return (
    <>
      <Going to={{}} onGo={onGo} class="da-new"><><Icon name="plus" /> {t.page.newChat}</></Going>
      {(words || kept.length >= MANY) && (
        <input type="search" class="da-find-chat" aria-label={t.page.find} placeholder={t.page.find} value={words}
          onInput={(event) => onWords(event.currentTarget.value)} />
      )}
      {byDay(kept).map(([day, chats]) => (
        <section key={day} aria-label={t.page[day]}>
          <h2 class="da-label">{t.page[day]}</h2>
          <ul>
            {chats.map((chat) => (
              <li key={chat.id}>
                {renamed === chat.id
                  ? <Name title={chat.title} onEnd={(name) => { setRenamed(""); if (name) history.get(chat.id)?.rename(name); }} />
                  : <><Going to={{ chat: chat.id }} onGo={onGo} current={chat.id === current}><bdi>{chat.title}</bdi></Going>{buttons(chat)}</>}
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="da-muted da-kept">{t.page.kept(days)}</p>
      {kept.length > 1 && !words && (
        <button type="button" class="da-button da-plain" onClick={removeAll} onBlur={() => setSure(false)}>
          {sure ? t.page.removeSure : t.page.removeAll}
        </button>
      )}
    </>
  );
}

/** The name of a chat while it is changed; Escape leaves it as it was. */
function Name({ title, onEnd }: { title: string; onEnd: (name: string) => void }): JSX.Element {
  const { t } = useUi();
  const field = useRef<HTMLInputElement>(null);
  const ended = useRef(false); // a field that goes loses the focus first
  useEffect(() => field.current?.select(), []);
  const end = (name?: string) => {
    if (!ended.current) onEnd(name ?? field.current!.value);
    ended.current = true;
  };
  const leave = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // of the drawer, which it would close
    end("");
  };
  return (
    <form class="da-name" onSubmit={(event) => { event.preventDefault(); end(); }}>
      <input ref={field} aria-label={t.page.rename(title)} defaultValue={title} maxLength={LONGEST_TITLE} onBlur={() => end()} onKeyDown={leave} />
    </form>
  );
}

/** Saves the conversation as a file of Markdown. */
function save(conversation: KeptConversation | null, heading: string): void {
  if (!conversation) return;
  const parts = conversation.exchanges.map(({ question, answer }) => `## ${question.trim()}\n\n${asMarkdown(answer, heading)}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([[`# ${conversation.title}\n`, ...parts].join("\n")], { type: "text/markdown" }));
  link.download = `${conversation.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "chat"}.md`;
  link.click();
  URL.revokeObjectURL(link.href);
}

type Day = "today" | "yesterday" | "earlier";

function byDay(kept: Kept[]): [Day, Kept[]][] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const dayOf = ({ at }: Kept): Day => (at >= midnight ? "today" : at >= midnight - 86_400_000 ? "yesterday" : "earlier");
  const days: Day[] = ["today", "yesterday", "earlier"];
  return days.map((day): [Day, Kept[]] => [day, kept.filter((one) => dayOf(one) === day)]).filter(([, chats]) => chats.length);
}
