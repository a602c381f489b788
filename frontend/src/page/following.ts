/** Scrolls with an answer until its question is at the top, so that one reads it from its beginning. After that, it scrolls on
 * only while the reader is at the end. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Exchange } from "../shared/types";

const NEAR = 80; // pixels above the end that count as the end
const HEADER = 64; // pixels that the header covers

type Mode = "fill" | "end" | "none";

export function useFollowing(exchanges: Exchange[]) {
  const last = useRef<HTMLElement>(null);
  const mode = useRef<Mode>("none");
  const placed = useRef(-1); // where we scrolled to, which isn't the reader's doing
  const [away, setAway] = useState(false);
  useEffect(() => {
    const scrolled = () => {
      const left = end() - window.scrollY;
      setAway(left >= NEAR * 3);
      if (Math.abs(window.scrollY - placed.current) > 2) mode.current = left < NEAR ? "end" : "none";
    };
    window.addEventListener("scroll", scrolled, { passive: true });
    return () => window.removeEventListener("scroll", scrolled);
  }, []);
  const answer = exchanges.at(-1)?.answer;
  const scroll = () => {
    if (mode.current === "none" || !last.current) return;
    const top = last.current.getBoundingClientRect().top + window.scrollY - HEADER;
    const target = mode.current === "fill" ? Math.min(top, end()) : end();
    if (target <= window.scrollY) return;
    placed.current = target;
    window.scrollTo(0, target);
  };
  useLayoutEffect(() => {
    scroll();
    if (answer && answer.state !== "waiting" && answer.state !== "writing") mode.current = "none";
  }, [answer]);
  const follow = useCallback((how: Mode) => {
    mode.current = how;
    requestAnimationFrame(scroll);
  }, []);
  return { last, away, follow };
}

function end(): number {
  return document.documentElement.scrollHeight - document.documentElement.clientHeight;
}
