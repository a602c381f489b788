/** A link to an address from elsewhere; without a harmless address, its content alone. */
import type { AnchorHTMLAttributes, ComponentChildren, JSX } from "preact";
import { useUi } from "./ui";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** The whole address, if it leads to the web or a mailbox. */
export function address(href: string, base: string = document.baseURI): string | null {
  try {
    const url = new URL(href, base);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The path of an address, as readers know it. */
export const path = (url: string): string => url.replace(/^\w+:\/\/[^/]+|[?#].*/g, "");

interface Props extends Pick<AnchorHTMLAttributes, "class" | "dir" | "tabIndex"> {
  href: string;
  /** The address that a relative one is relative to. */
  base?: string | undefined;
  children: ComponentChildren;
}

export function Link({ href, base, children, ...rest }: Props): JSX.Element {
  const { target } = useUi();
  const url = address(href, base);
  return url ? <a {...rest} href={url} target={target} rel="noopener">{children}</a> : <>{children}</>;
}

/** Links to pages by their titles, but for those that stand `besides` them; nothing without any. */
export function Pages({ label, pages = {}, besides = [] }: { label: string; pages: Record<string, string> | undefined; besides?: readonly string[] }): JSX.Element | null {
  const links = Object.entries(pages).filter(([, title]) => !besides.includes(title)).map(([url, title]) => <Link key={url} class="da-button da-plain" href={url}>{title}</Link>);
  return links.length ? <section class="da-recent" aria-label={label}><p class="da-label">{label}</p>{links}</section> : null;
}
