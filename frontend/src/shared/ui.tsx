/** What all components share: the API, the texts, and where links open. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Api } from "./api";
import { type Texts, texts } from "./texts";

export interface Ui {
  api: Api;
  t: Texts;
  /** Where links of answers open: in a new tab, or in this one. */
  target: "_blank" | "_self";
}

const Context = createContext<Ui>({ api: null as unknown as Api, t: texts("en"), target: "_blank" });

export const UiProvider = Context.Provider;

export function useUi(): Ui {
  return useContext(Context);
}
