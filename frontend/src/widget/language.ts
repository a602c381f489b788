/** The language of the page, and the texts in it: a part of its own for each language. */
import { useEffect, useState } from "preact/hooks";
import type { Texts, UiLanguage } from "../shared/texts";

/** Complete for the groups that the widget has. */
export const TEXTS: Record<UiLanguage, () => Promise<Texts>> = {
  en: async () => (await import("../shared/texts/en")).en,
  cs: async () => (await import("../shared/texts/cs")).cs,
  de: async () => (await import("../shared/texts/de")).de as Texts,
};

/** The language that the site set, else that of the page, which may change with the page. */
export function usePageLanguage(given: string): string {
  const now = (): string => given || document.documentElement.lang || navigator.language;
  const [language, setLanguage] = useState(now);
  useEffect(() => {
    const observer = new MutationObserver(() => setLanguage(now()));
    observer.observe(document.documentElement, { attributeFilter: ["lang"] });
    return () => observer.disconnect();
  }, []);
  return (language.split("-")[0] ?? "").toLowerCase();
}
