/** Where the reader is: the address below /admin. Links are ordinary ones; a click on one changes the view without a load. */
import { useEffect, useState } from "preact/hooks";

const ROOT = new URL("admin", document.baseURI);

/** The part of the address after `admin/`, without a slash at either end, and its query. */
export interface Place {
  path: string;
  query: URLSearchParams;
}

export function here(): Place {
  return { path: inside(location.pathname) ?? "", query: new URLSearchParams(location.search) };
}

function inside(pathname: string): string | null {
  if (pathname !== ROOT.pathname && !pathname.startsWith(`${ROOT.pathname}/`)) return null;
  return pathname.slice(ROOT.pathname.length).replace(/^\/+|\/+$/g, "");
}

export type Parameters = Record<string, string | number | null | undefined>;

/** The path with these parameters; those that are null or undefined are left out. */
export function withQuery(path: string, parameters: Parameters): string {
  const query = new URLSearchParams(Object.entries(parameters).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]])));
  return query.size ? `${path}?${query}` : path;
}

/** The address of a view, for links. */
export const address = (path: string, parameters: Parameters = {}): string => `admin/${withQuery(path, parameters)}`;

/** Show this address of a view, as a link to it would. */
export function go(to: string): void {
  history.pushState(null, "", new URL(to, document.baseURI));
  dispatchEvent(new PopStateEvent("popstate"));
}

function onClick(event: MouseEvent): void {
  const link = (event.target as Element).closest?.("a");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href, document.baseURI);
  if (link.target || url.origin !== location.origin || inside(url.pathname) === null) return;
  event.preventDefault();
  if (url.href !== location.href) go(url.href);
}

/** The current place; the component is shown again when it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const changed = () => setPlace(here());
    addEventListener("popstate", changed);
    document.addEventListener("click", onClick);
    return () => {
      removeEventListener("popstate", changed);
      document.removeEventListener("click", onClick);
    };
  }, []);
  return place;
}
