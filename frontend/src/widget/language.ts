/** The language of the page, and the texts in it: a part of its own for each language. */
import { useEffect, useState } from "preact/hooks";
import type { InterfaceBody } from "../../api";
import { Api, interfaceHere } from "../shared/api";
import type { Texts, UiLanguage } from "../shared/texts";
import type { Options } from "./options";

/** Complete for the groups that the widget has. */
export const TEXTS: Record<UiLanguage, () => Promise<Texts>> = {
  en: async () => (await import("../shared/texts/en")).en,
  cs: async () => (await import("../shared/texts/cs")).cs,
  de: async () => (await import("../shared/texts/de")).de as Texts,
};

/** The language that the site set, else that of the page, which may change with the page, else that by which the index knows it. */
export function usePageLanguage({ language: given, service, key }: Options): string {
  const now = (): string => given || document.documentElement.lang;
  const [language, setLanguage] = useState(now() || navigator.language);
  useEffect(() => {
    const look = async (): Promise<void> => {
      const known = now() || (await new Api(service, key).json<InterfaceBody>(interfaceHere()).catch(() => null))?.page_language;
      setLanguage(now() || known || navigator.language);
    };
    const observer = new MutationObserver(look);
    observer.observe(document.documentElement, { attributeFilter: ["lang"] });
    void look();
    return () => observer.disconnect();
  }, []);
  return (language.split("-")[0] ?? "").toLowerCase();
}
