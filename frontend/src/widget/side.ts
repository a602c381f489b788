/** The panel at the side of the page (`data-layout="panel"`): beside the text, which can be read on, and as wide as the reader wants. It stays
 * open from page to page of the tab. Loaded only where a site wants it; without Preact, so that the other parts stay as they are. */
import type { Options } from "./options";
import css from "./side.css";

const WIDTH = 420; // pixels
const NARROWEST = 300;
const TEXT = 560; // pixels that a page needs beside it; over a narrower one, and one that can't become so narrow, the panel lies
const STEP = 24; // pixels of an arrow key
const sheet = new CSSStyleSheet();
sheet.replaceSync(css);

/** Gives the panel an edge by which it is made wider or narrower, and calls `reopen` if it was open on the page before; returns how to end that. */
export function attach(dialog: HTMLDialogElement, { service, position }: Options, label: string, reopen: () => void): () => void {
  const name = `docs-assistant:${service}:`;
  const left = position === "bottom-left";
  const margin = left ? "marginLeft" : "marginRight";
  const root = dialog.getRootNode() as ShadowRoot;
  const page = document.documentElement;
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  const told = { role: "separator", ariaOrientation: "vertical", ariaLabel: label, ariaValueMin: `${NARROWEST}` };
  const edge = Object.assign(document.createElement("div"), { className: "da-edge", tabIndex: 0, ...told });
  let width = Number(kept(`${name}width`)) || WIDTH;
  const fit = (): void => {
    const widest = Math.max(NARROWEST, Math.round(page.clientWidth * 0.7));
    const shown = Math.min(width, widest);
    const beside = dialog.open && !dialog.matches(":modal");
    dialog.style.setProperty("--da-width", `${shown}px`);
    Object.assign(edge, { ariaValueNow: `${shown}`, ariaValueMax: `${widest}` });
    page.style[margin] = beside && page.clientWidth - shown >= TEXT ? `${shown}px` : "";
    if (page.scrollWidth > page.clientWidth) page.style[margin] = "";
  };
  const resize = (pixels: number): void => {
    width = Math.round(Math.max(NARROWEST, Math.min(pixels, page.clientWidth * 0.7)));
    kept(`${name}width`, String(width));
    fit();
  };
  edge.onpointerdown = ({ pointerId }) => edge.setPointerCapture(pointerId);
  edge.onpointermove = ({ pointerId, clientX: x }) => edge.hasPointerCapture(pointerId) && resize(left ? x : page.clientWidth - x);
  edge.onkeydown = ({ key }) => {
    if (key === "ArrowLeft" || key === "ArrowRight") resize(width + ((key === "ArrowLeft") === left ? -STEP : STEP));
  };
  dialog.append(edge);
  fit();
  if (kept(`${name}open`)) reopen();
  const opened = new MutationObserver(() => {
    kept(`${name}open`, dialog.open ? "yes" : "");
    fit();
  });
  opened.observe(dialog, { attributeFilter: ["open"] });
  window.addEventListener("resize", fit);
  return () => {
    opened.disconnect();
    window.removeEventListener("resize", fit);
    edge.remove();
    page.style[margin] = "";
  };
}

/** What is kept for this tab under the name; with a value, it is kept from now on. */
function kept(name: string, value?: string): string {
  try {
    if (value !== undefined) sessionStorage.setItem(name, value);
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return ""; // forbidden by the browser's settings
  }
}
