/** The views by their address below admin/. A view gets what follows its path, and the query. */
import type { ComponentType } from "preact";
import type { ViewBody } from "../../api";
import { ChunkView } from "./chunk";
import { Curated } from "./curated";
import { Gaps } from "./gaps";
import { Generations } from "./generations";
import { Keys } from "./keys";
import { Errors, Settings } from "./operation";
import { Overview } from "./overview";
import { Page } from "./page";
import { Pages } from "./pages";
import { Quality } from "./quality";
import { Questions } from "./questions";
import { Runs } from "./runs";
import { Sites } from "./sites";
import { scripted } from "./scripted";
import type { AdminTexts } from "./texts/en";
import { Ask } from "./trace/view";

export interface ViewProps {
  /** The rest of the address after the path of the view, decoded; empty if there is none. */
  rest: string;
  query: URLSearchParams;
}

export interface Route {
  path: string;
  title: (t: AdminTexts, language: string) => string;
  view: ComponentType<ViewProps>;
  /** Which entry of the menu is marked, if the view has none itself. */
  within?: string;
  /** Whether another group of the menu begins with it. */
  first?: boolean;
  /** Whether it is there only if the service lists it, because a plugin has its data. */
  plugin?: boolean;
}

const ROUTES: Route[] = [
  { path: "", title: (t) => t.views.overview, view: Overview },
  { path: "questions", title: (t) => t.views.questions, view: Questions, first: true },
  { path: "quality", title: (t) => t.views.quality, view: Quality },
  { path: "gaps", title: (t) => t.views.gaps, view: Gaps, plugin: true },
  { path: "curated", title: (t) => t.views.curated, view: Curated, plugin: true },
  { path: "ask", title: (t) => t.views.ask, view: Ask },
  { path: "pages", title: (t) => t.views.pages, view: Pages, first: true },
  { path: "page", title: (t) => t.views.page, view: Page, within: "pages" },
  { path: "chunk", title: (t) => t.views.chunk, view: ChunkView, within: "pages" },
  { path: "sites", title: (t) => t.views.sites, view: Sites },
  { path: "runs", title: (t) => t.views.runs, view: Runs },
  { path: "generations", title: (t) => t.views.generations, view: Generations },
  { path: "keys", title: (t) => t.views.keys, view: Keys, first: true },
  { path: "settings", title: (t) => t.views.settings, view: Settings },
  { path: "errors", title: (t) => t.views.errors, view: Errors },
];

/** Our views, and those of plugins that the service lists. */
export function routesWith(listed: ViewBody[]): Route[] {
  const ours = ROUTES.filter((route) => !route.plugin || listed.some((one) => one.path === route.path));
  const theirs = listed.flatMap(({ path, titles, script }) =>
    script ? [{ path, title: (_: AdminTexts, language: string) => titles[language] ?? titles.en ?? path, view: scripted(script) }] : [],
  );
  return [...ours, ...theirs];
}

/** The route of this path, and the rest of the path. */
export function routeOf(routes: Route[], path: string): { route: Route; rest: string } | null {
  const [first = "", ...more] = path.split("/");
  const route = routes.find((one) => one.path === first);
  return route ? { route, rest: decodeURIComponent(more.join("/")) } : null;
}
