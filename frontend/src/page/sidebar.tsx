/** The conversations kept in this browser. On a phone it is a drawer. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { History, Kept } from "../shared/history";
import { Icon } from "../shared/icons";
import { useUi } from "../shared/ui";
import type { Address } from "./address";
import { Going } from "./header";

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
  const [kept, setKept] = useState(() => history.list());
  const drawer = useRef<HTMLDialogElement>(null);
  useEffect(() => history.onChange(() => setKept(history.list())), [history]);
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
  const list = <Chats kept={kept} current={current} days={days} onGo={go} onRemove={remove} />;
  return (
    <>
      <nav class="da-sidebar" aria-label={t.page.chats}>{list}</nav>
      <dialog class="da-drawer" ref={drawer} aria-label={t.page.chats} onClose={onClose}
        onClick={(event) => event.target === drawer.current && onClose()}>
        <button type="button" class="da-icon-button" aria-label={t.page.close} onClick={onClose}><Icon name="close" /></button>
        {open && list}
      </dialog>
    </>
  );
}

interface ChatsProps {
  kept: Kept[];
  current: string;
  days: number;
  onGo: (to: Address) => void;
  onRemove: (ids: string[]) => void;
}

function Chats({ kept, current, days, onGo, onRemove }: ChatsProps): JSX.Element {
  const { t } = useUi();
  const [sure, setSure] = useState(false);
  const removeAll = () => {
    if (sure) onRemove(kept.map(({ id }) => id));
    setSure(!sure);
  };
  return (
    <>
      <Going to={{}} onGo={onGo} class="da-new"><><Icon name="plus" /> {t.page.newChat}</></Going>
      {byDay(kept).map(([day, chats]) => (
        <section key={day} aria-label={t.page[day]}>
          <h2 class="da-label">{t.page[day]}</h2>
          <ul>
            {chats.map(({ id, title }) => (
              <li key={id}>
                <Going to={{ chat: id }} onGo={onGo} current={id === current}>{title}</Going>
                <button type="button" class="da-icon-button" aria-label={t.page.remove(title)} title={t.page.remove(title)}
                  onClick={() => onRemove([id])}>
                  <Icon name="trash" size={16} />
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="da-muted da-kept">{t.page.kept(days)}</p>
      {kept.length > 1 && (
        <button type="button" class="da-button da-plain" onClick={removeAll} onBlur={() => setSure(false)}>
          {sure ? t.page.removeSure : t.page.removeAll}
        </button>
      )}
    </>
  );
}

type Day = "today" | "yesterday" | "earlier";

function byDay(kept: Kept[]): [Day, Kept[]][] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const dayOf = ({ at }: Kept): Day => (at >= midnight ? "today" : at >= midnight - 86_400_000 ? "yesterday" : "earlier");
  const days: Day[] = ["today", "yesterday", "earlier"];
  return days.map((day): [Day, Kept[]] => [day, kept.filter((one) => dayOf(one) === day)]).filter(([, chats]) => chats.length);
}
