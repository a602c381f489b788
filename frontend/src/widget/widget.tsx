/** The element of the widget in the page: its styles, and when it opens. */
import { render } from "preact";
import { App, type Control } from "./app";
import { watchDark } from "./dark";
import type { Options } from "./options";
import { onShortcut } from "./shortcut";
import { styles } from "./styles";

/** Elements of the site that open the panel; the value of the attribute is asked. */
const OPENER = "data-docs-assistant";

export class Widget {
  private readonly host = document.createElement("docs-assistant");
  private readonly root = this.host.attachShadow({ mode: "open" });
  private readonly control: Control = { open: () => undefined, close: () => undefined };
  private readonly ends: (() => void)[];

  constructor(options: Options) {
    this.root.adoptedStyleSheets = styles(options.color, options.service);
    this.host.setAttribute("data-position", options.position);
    document.body.append(this.host);
    render(<App options={options} control={this.control} />, this.root);
    this.ends = [
      watchDark((dark) => this.host.setAttribute("data-theme", dark ? "dark" : "light")),
      onShortcut(options.shortcut, () => this.open()),
      this.keepKeys(),
      this.watchOpeners(),
      this.stayInPage(),
    ];
  }

  open(question = ""): void {
    this.control.open(question);
  }

  close(): void {
    this.control.close();
  }

  remove(): void {
    for (const end of this.ends) end();
    render(null, this.root);
    this.host.remove();
  }

  /** The site's shortcuts aren't for what is typed into the panel: from outside, that doesn't look like a field. */
  private keepKeys(): () => void {
    const keep = (event: Event): void => {
      if (event.composedPath().some((node) => node instanceof HTMLDialogElement)) event.stopPropagation();
    };
    const kinds = ["keydown", "keypress", "keyup"];
    for (const kind of kinds) this.host.addEventListener(kind, keep);
    return () => kinds.forEach((kind) => this.host.removeEventListener(kind, keep));
  }

  private watchOpeners(): () => void {
    const listen = (event: MouseEvent): void => {
      const opener = event.target instanceof Element ? event.target.closest(`[${OPENER}]`) : null;
      if (!opener || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(opener.getAttribute(OPENER) ?? "");
    };
    document.addEventListener("click", listen);
    return () => document.removeEventListener("click", listen);
  }

  /** Sites that change pages by script may replace the whole body. */
  private stayInPage(): () => void {
    const observer = new MutationObserver(() => {
      if (!this.host.isConnected && document.body) document.body.append(this.host);
    });
    observer.observe(document.documentElement, { childList: true });
    return () => observer.disconnect();
  }
}
