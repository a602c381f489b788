/** The language of the page, and the texts in it: a part of its own for each language. */
import { useEffect, useState } from "preact/hooks";
import type { Texts, UiLanguage } from "../shared/texts";

const TEXTS: Record<UiLanguage, () => Promise<Partial<Texts>>> = {
  en: async () => (await import("../shared/texts/en")).en,
  cs: async () => (await import("../shared/texts/cs")).cs,
  de: async () => (await import("../shared/texts/de")).de,
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

/** The texts; null until they are loaded. */
export function useTexts(language: UiLanguage): Texts | null {
  const [texts, setTexts] = useState<Texts | null>(null);
  useEffect(() => {
    let current = true;
    TEXTS[language]().then(
      (found) => current && setTexts(found as Texts), // complete for the groups that the widget has
      (error: unknown) => console.warn("The widget can't be loaded:", error),
    );
    return () => {
      current = false;
    };
  }, [language]);
  return texts;
}
