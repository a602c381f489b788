/** A view of a plugin: its script draws into an element of the page. */
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../shared/api";
import { useUi } from "../shared/ui";
import { Failure, useAdmin } from "./data";
import type { ViewProps } from "./routes";

interface Script {
  render: (element: HTMLElement, service: { json: (path: string) => Promise<unknown>; language: string; query: URLSearchParams }) => unknown;
}

export function scripted(script: string): ComponentType<ViewProps> {
  return function Scripted({ query }: ViewProps): JSX.Element {
    const { api } = useUi();
    const { language } = useAdmin();
    const element = useRef<HTMLDivElement>(null);
    const [problem, setProblem] = useState<ApiError | null>(null);
    const draw = async () => {
      setProblem(null);
      element.current?.replaceChildren();
      try {
        const { render } = (await import(api.url(script))) as Script;
        if (element.current) await render(element.current, { json: (path) => api.json(path), language, query });
      } catch (error) {
        setProblem(asApiError(error));
      }
    };
    useEffect(() => void draw(), [language]);
    return <>{problem && <Failure problem={problem} onRetry={() => void draw()} />}<div ref={element} /></>;
  };
}
