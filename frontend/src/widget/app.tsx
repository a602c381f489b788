/** The button and the panel that it opens. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api } from "../shared/api";
import { Icon } from "../shared/icons";
import { uiLanguage } from "../shared/texts";
import { UiProvider } from "../shared/ui";
import { TEXTS, usePageLanguage } from "./language";
import type { Options } from "./options";
import { useSelected } from "./selection";
import { shownKeys } from "./shortcut";

/** What the page calls; set while the widget is in it. */
export interface Control {
  open: (question: string) => void;
  close: () => void;
}

export function App({ options, control }: { options: Options; control: Control }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [opened, setOpened] = useState({ times: 0, question: "", quietly: false });
  const language = usePageLanguage(options);
  const shownLanguage = uiLanguage(language);
  const t = useLoaded(shownLanguage, TEXTS[shownLanguage]);
  const api = useMemo(() => new Api(options.service, options.key, language), [language]);
  const ui = useMemo(() => t && { api, t, target: "_self" as const }, [api, t]);
  const shown = useLoaded(opened.times > 0, () => import("./panel"));
  const beside = options.layout === "panel";
  const side = useLoaded(beside, () => import("./side"));
  const open = (question = "", quietly = false) => setOpened(({ times }) => ({ times: times + 1, question, quietly }));
  const close = () => dialog.current?.close();
  useLayoutEffect(() => {
    control.close = close;
    control.open = open;
  }, []);
  useLayoutEffect(() => {
    const panel = dialog.current;
    if (!opened.times || !panel || panel.open || (beside && !side)) return;
    if (isPhone()) panel.showModal();
    else if (opened.quietly) panel.setAttribute("open", ""); // leaves the focus where it is
    else panel.show();
  }, [opened.times, ui !== null, side]);
  useEffect(() => (side && ui ? side.attach(dialog.current!, options, ui.t.widget.width, () => isPhone() || open("", true)) : undefined), [side, ui]);
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
            onClick={() => open()}>
            <Icon name="ask" size={20} /> <span>{label}</span>
          </button>
        )}
        {selected && (
          <button type="button" class="da-launch da-selected" style={{ left: `${selected.x}px`, top: `${selected.y}px` }}
            onClick={() => { unselect(); open(widget.about(selected.text)); }}>
            <Icon name="ask" size={16} /> <span>{widget.askAbout}</span>
          </button>
        )}
        <dialog ref={dialog} class="da-panel" aria-label={widget.title}>
          {shown && <shown.Panel options={options} opened={opened} onClose={close} />}
        </dialog>
      </div>
    </UiProvider>
  );
}

/** A part of the widget, loaded as soon as it is wanted, and anew where another is. */
function useLoaded<T>(wanted: unknown, load: () => Promise<T>): T | null {
  const [loaded, setLoaded] = useState<T | null>(null);
  useEffect(() => {
    let current = true;
    if (wanted) load().then((part) => current && setLoaded(() => part), (error: unknown) => console.warn("The widget can't be loaded:", error));
    return () => {
      current = false;
    };
  }, [wanted]);
  return loaded;
}

/** The panel fills the screen there; elsewhere the page stays of use. */
const isPhone = (): boolean => matchMedia("(max-width: 600px)").matches;

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
    const until = new AbortController();
    for (const kind of ["resize", "scroll"]) visible.addEventListener(kind, fit, until);
    return () => until.abort();
  }, []);
}
