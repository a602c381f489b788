/** The button and the panel that it opens. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api } from "../shared/api";
import { Icon } from "../shared/icons";
import { uiLanguage } from "../shared/texts";
import { UiProvider } from "../shared/ui";
import { usePageLanguage, useTexts } from "./language";
import type { Options } from "./options";
import type { Panel } from "./panel";
import { useSelected } from "./selection";
import { shownKeys } from "./shortcut";

/** What the page calls; set while the widget is in it. */
export interface Control {
  open: (question: string) => void;
  close: () => void;
}

export function App({ options, control }: { options: Options; control: Control }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [opened, setOpened] = useState({ times: 0, question: "" });
  const language = usePageLanguage(options.language);
  const shownLanguage = uiLanguage(language);
  const t = useTexts(shownLanguage);
  const api = useMemo(() => new Api(options.service, options.key, language), [language]);
  const ui = useMemo(() => t && { api, t, target: "_self" as const }, [api, t]);
  const shown = usePanel(opened.times > 0);
  const close = () => dialog.current?.close();
  useLayoutEffect(() => {
    control.close = close;
    control.open = (question) => setOpened(({ times }) => ({ times: times + 1, question }));
  }, []);
  useLayoutEffect(() => {
    if (opened.times && !dialog.current?.open) dialog.current?.showModal();
  }, [opened.times, ui !== null]);
  useVisibleHeight(dialog);
  const [selected, unselect] = useSelected(options.selection);
  if (!ui) return <></>;
  const { widget } = ui.t;
  const label = options.button || ui.t.chat.ask;
  const keys = shownKeys(options.shortcut);
  return (
    <UiProvider value={ui}>
      <div class="da-root" lang={shownLanguage}>
        {!options.hidden && (
          <button type="button" class="da-launch" aria-haspopup="dialog" title={keys && `${label} (${keys})`}
            onClick={() => control.open("")}>
            <Icon name="ask" size={20} /> <span>{label}</span>
          </button>
        )}
        {selected && (
          <button type="button" class="da-launch da-selected" style={{ left: `${selected.x}px`, top: `${selected.y}px` }}
            onClick={() => { unselect(); control.open(widget.about(selected.text)); }}>
            <Icon name="ask" size={16} /> <span>{widget.askAbout}</span>
          </button>
        )}
        <dialog ref={dialog} class="da-panel" aria-label={widget.title} onClick={(event) => onOutside(event, close)}>
          {shown && <shown.Panel options={options} opened={opened} onClose={close} />}
        </dialog>
      </div>
    </UiProvider>
  );
}

/** What is in the panel, loaded when it is opened first. */
function usePanel(wanted: boolean): { Panel: typeof Panel } | null {
  const [loaded, setLoaded] = useState<{ Panel: typeof Panel } | null>(null);
  useEffect(() => {
    if (wanted) void import("./panel").then(setLoaded);
  }, [wanted]);
  return loaded;
}

/** A click beside the panel closes it. */
function onOutside(event: MouseEvent, close: () => void): void {
  if (event.target !== event.currentTarget) return;
  const { left, right, top, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const { clientX: x, clientY: y } = event;
  if (x < left || x > right || y < top || y > bottom) close();
}

/** What the keyboard of a phone leaves visible, as variables of the panel. */
function useVisibleHeight(dialog: { current: HTMLDialogElement | null }): void {
  useEffect(() => {
    const visible = window.visualViewport;
    if (!visible) return;
    const fit = (): void => {
      dialog.current?.style.setProperty("--da-visible", `${visible.height}px`);
      dialog.current?.style.setProperty("--da-top", `${visible.offsetTop}px`);
    };
    fit();
    visible.addEventListener("resize", fit);
    visible.addEventListener("scroll", fit);
    return () => {
      visible.removeEventListener("resize", fit);
      visible.removeEventListener("scroll", fit);
    };
  }, []);
}
