/** Whether a page is dark, by what one sees: its background. So every site's own switch works, without knowing it. */

/** Calls the function now and after each change; returns how to end that. */
export function watchDark(changed: (dark: boolean) => void): () => void {
  let last: boolean | undefined;
  const look = (): void => {
    const now = isDark();
    if (now !== last) changed((last = now));
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  const until = new AbortController();
  system.addEventListener("change", look, until);
  // colours that fade have their last value only then; a style sheet may come late
  document.addEventListener("transitionend", look, until);
  window.addEventListener("load", look, until);
  look();
  return () => {
    observer.disconnect();
    until.abort();
  };
}

function isDark(): boolean {
  for (const element of [document.body, document.documentElement]) {
    const { backgroundColor, colorScheme } = getComputedStyle(element);
    const light = lightness(backgroundColor);
    if (light !== undefined) return light < 0.5;
    if (colorScheme === "dark" || colorScheme === "light") return colorScheme === "dark";
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** 0..1, of a colour as browsers compute it; undefined if one sees through it. */
function lightness(color: string): number | undefined {
  const [, form = "", rest = ""] = /^([a-z]+)\((?:srgb |display-p3 )?(.*)\)$/.exec(color) ?? [];
  const [first = 0, second = 0, third = 0, alpha = 1] = (rest.match(/[\d.]+(e-\d+)?/g) ?? []).map(Number);
  if (!rest || alpha < 0.5) return undefined;
  if (form === "oklch" || form === "oklab") return first;
  if (form === "lch" || form === "lab") return first / 100;
  return (0.299 * first + 0.587 * second + 0.114 * third) / (form === "color" ? 1 : 255);
}
