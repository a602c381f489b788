/** The line on top: title, modes, new chat, settings. */
import type { JSX } from "preact";
import type { InterfaceAssistant, InterfaceBody } from "../../api";
import { Icon, IconButton } from "../shared/icons";
import { SignOut } from "../shared/problems";
import { LANGUAGES, inLanguage } from "../shared/texts";
import { useUi } from "../shared/ui";
import { type Address, type Mode, addressOf } from "./address";
import type { Choices } from "./choices";

interface Props {
  known: InterfaceBody | null;
  assistant: InterfaceAssistant | null;
  choices: Choices;
  choose: (change: Partial<Choices>) => void;
  language: string;
  mode: Mode;
  /** Where each mode was left. */
  places: Record<Mode, Address>;
  onMenu: () => void;
  onGo: (to: Address) => void;
  onForget: (() => void) | undefined;
}

export function Header(props: Props): JSX.Element {
  const { known, mode, places, onMenu, onGo } = props;
  const { t } = useUi();
  return (
    <header class="da-header">
      <IconButton icon="menu" label={t.page.menu} class="da-menu" onClick={onMenu} />
      <Going to={{}} onGo={onGo} class="da-title">
        <><img src="brand/icon" alt="" width={24} height={24} /><span>{known?.title ?? document.title}</span></>
      </Going>
      <nav class="da-modes" aria-label={t.page.modes}>
        <Going to={places.ask} onGo={onGo} current={mode === "ask"}>{t.chat.ask}</Going>
        <Going to={places.search} onGo={onGo} current={mode === "search"}>{t.search.field}</Going>
      </nav>
      <span class="da-space" />
      <Going to={{}} onGo={onGo} class="da-icon-button" label={t.page.newChat}><Icon name="plus" /></Going>
      <Settings {...props} />
    </header>
  );
}

interface GoingProps {
  to: Address;
  onGo: (to: Address) => void;
  class?: string;
  current?: boolean;
  label?: string;
  children: JSX.Element | string;
}

/** A link to a part of the page, which opens without loading it again. */
export function Going({ to, onGo, current = false, label, children, ...rest }: GoingProps): JSX.Element {
  const click = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // in a new tab
    event.preventDefault();
    onGo(to);
  };
  return (
    <a {...rest} href={addressOf(to)} aria-label={label} title={label} aria-current={current ? "page" : undefined} onClick={click}>
      {children}
    </a>
  );
}

function Settings({ known, assistant, choices, choose, language, onForget }: Props): JSX.Element {
  const { t } = useUi();
  const assistants = known?.assistants ?? [];
  return (
    <>
      <IconButton icon="settings" label={t.page.settings} popovertarget="da-settings" />
      <div id="da-settings" class="da-popover" popover="auto">
        <Choice label={t.page.language} value={language} options={LANGUAGES} onChange={(value) => choose({ language: value })} />
        <Choice label={t.page.theme} value={choices.theme} options={t.page.themes} onChange={(value) => choose({ theme: value })} />
        {assistants.length > 1 && (
          <Choice label={t.page.assistant} value={assistant?.id ?? ""} onChange={(value) => choose({ assistant: value })}
            options={Object.fromEntries(assistants.map((one) => [one.id, inLanguage(one.name, language) ?? one.id]))} />
        )}
        {!!assistant?.personas.length && (
          <Choice label={t.page.tone} value={choices.tone} onChange={(value) => choose({ tone: value })}
            options={{ "": t.page.defaultTone, ...toneNames(assistant, t.page.tones, language) }} />
        )}
        <a href="docs/" target="_blank" rel="noopener">{t.page.documentation}</a>
        {known?.person && <SignOut person={known.person} />}
        {onForget && <button type="button" class="da-button" onClick={onForget}>{t.page.forgetKey}</button>}
      </div>
    </>
  );
}

function toneNames(assistant: InterfaceAssistant, known: Record<string, string>, language: string): Record<string, string> {
  return Object.fromEntries(assistant.personas.map(({ id, name }) => [id, inLanguage(name, language) ?? known[id] ?? id]));
}

interface ChoiceProps {
  label: string;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps): JSX.Element {
  return (
    <label>
      <span class="da-label">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {Object.entries(options).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
      </select>
    </label>
  );
}
