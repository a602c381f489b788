/** A link to an address from elsewhere; without a harmless address, its content alone. */
import type { ComponentChildren, JSX } from "preact";
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

interface Props {
  href: string;
  /** The address that a relative one is relative to. */
  base?: string | undefined;
  class?: string;
  children: ComponentChildren;
}

export function Link({ href, base, children, ...rest }: Props): JSX.Element {
  const { target } = useUi();
  const url = address(href, base);
  return url ? <a {...rest} href={url} target={target} rel="noopener">{children}</a> : <>{children}</>;
}
