/** The style sheets of the shadow tree, adopted: a strict policy of the site allows no others. */
import shared from "../shared/style.css";
import own from "./style.css";

/** The styles of the widget in this colour; without one, in that of the service, once it is there. */
export function styles(color: string, service: string): CSSStyleSheet[] {
  const sheets = [shared, own, CSS.supports("color", color) ? accent(color) : ""].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
  if (!color) void fetch(`${service}brand.css`).then(async (found) => sheets[2]!.replace(await found.text())).catch(() => null);
  return sheets;
}

/** A colour that is dark enough for white text becomes light enough for a dark page. */
function accent(color: string): string {
  return `:host { --da-accent: light-dark(${color}, color-mix(in oklab, ${color} 45%, white)); }`;
}
