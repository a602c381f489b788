/** The texts of the interface, and the choice of its language. Each package of the front end has a group of its own. */
import { cs } from "./cs";
import { de } from "./de";
import { type Texts, en } from "./en";

export type { Texts } from "./en";

export const LANGUAGES = { en: "English", cs: "Čeština", de: "Deutsch" } as const;
export type UiLanguage = keyof typeof LANGUAGES;

const ALL: Record<UiLanguage, Texts> = { en, cs, de: { ...en, ...de } };

export function texts(language: UiLanguage): Texts {
  return ALL[language];
}

/** The first of these languages that the interface has, else English; each may have a region (cs-CZ). */
export function uiLanguage(...wanted: (string | undefined)[]): UiLanguage {
  for (const name of [...wanted, ...navigator.languages]) {
    const code = name?.split("-")[0]?.toLowerCase() ?? "";
    if (Object.hasOwn(LANGUAGES, code)) return code as UiLanguage;
  }
  return "en";
}

/** The name of a language in the language of the interface. */
export function languageName(code: string, ui: string): string {
  try {
    return new Intl.DisplayNames([ui], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** The text in the reader's language, else in English, else any. */
export function inLanguage<T>(byLanguage: Record<string, T>, language: string): T | undefined {
  return byLanguage[language] ?? byLanguage["en"] ?? Object.values(byLanguage)[0];
}
