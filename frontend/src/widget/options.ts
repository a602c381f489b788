/** What a site sets: attributes of the script tag, or the argument of `mount`. */

export interface Options {
  /** Address of the service, with a slash at its end. */
  service: string;
  key: string;
  assistant: string;
  collections: string[];
  language: string;
  color: string;
  greeting: string;
  button: string;
  position: "bottom-right" | "bottom-left";
  layout: "bubble" | "panel";
  hidden: boolean;
  /** Whether the button follows selected text. */
  selection: boolean;
  shortcut: string;
}

/** The names of the attributes, without `data-`, with texts as values. */
export type Given = Partial<Record<keyof Options, string | boolean | readonly string[]>>;

/** An attribute without a value is an empty text. */
const isOn = (value: Given[keyof Options]): boolean => value === true || (typeof value === "string" && value !== "false");

export function options(given: Given, service: string): Options {
  const text = (name: keyof Options): string => String(given[name] ?? "").trim();
  return {
    service: new URL((text("service") || service).replace(/\/*$/, "/"), location.href).href,
    key: text("key"),
    assistant: text("assistant"),
    collections: [given.collections ?? []].flat().join(",").split(",").map((name) => name.trim()).filter(Boolean),
    language: text("language"),
    color: text("color"),
    greeting: text("greeting"),
    button: text("button"),
    position: text("position") === "bottom-left" ? "bottom-left" : "bottom-right",
    layout: text("layout") === "panel" ? "panel" : "bubble",
    hidden: isOn(given.hidden),
    selection: isOn(given.selection ?? true) && !isOn(given.hidden),
    shortcut: text("shortcut") || "Mod+K",
  };
}

/** The address of the service whose `static/` has this script. */
export function serviceOf(script: string): string {
  return new URL("..", script).href;
}
