/** A bar whose place and length are shares of its track. The policy of the page forbids style attributes, so a script sets them. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Bar({ from, to, kind }: { from: number; to: number; kind: string }): JSX.Element {
  const bar = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    bar.current!.style.setProperty("--from", String(from));
    bar.current!.style.setProperty("--to", String(to));
  }, [from, to]);
  return <span ref={bar} class={`tr-bar tr-${kind}`} />;
}
