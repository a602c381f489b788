/** A figure of each day as bars with a scale; a day that is pointed at, or chosen with the arrow keys, says its figure. */
import type { JSX } from "preact";
import { useAdmin } from "./data";

interface Props {
  name: string;
  unit: string;
  days: string[];
  values: number[];
  /** Which day speaks, in all plots of a view, and who is told. */
  at: number | null;
  onPoint: (at: number | null) => void;
  /** Who is told of a day that is clicked, or chosen with Enter. */
  onChoose?: ((day: string) => void) | undefined;
}

export function Plot({ name, unit, days, values, at, onPoint, onChoose }: Props): JSX.Element {
  const { day, shortDay, number, compact } = useAdmin();
  const [all, most] = [days.length, Math.max(1, ...values)];
  const said = (i: number) => `${day(days[i]!)}: ${number(values[i]!)}`;
  const point = (event: PointerEvent) => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    onPoint(Math.min(all - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * all))));
  };
  return (
    <div class="ad-plot">
      <p>{at === null ? unit : said(at)}</p>
      <div class="ad-scale"><span>{compact(most)}</span><span>0</span></div>
      <div class="ad-days" style={{ maxWidth: `${all}rem` }} onPointerMove={point} onClick={() => at !== null && onChoose?.(days[at]!)} onPointerLeave={(event) => event.pointerType === "mouse" && onPoint(null)}>
        <svg viewBox={`0 0 ${all} 1`} preserveAspectRatio="none" aria-hidden="true">
          {values.map((value, i) => <rect key={i} class={i === at ? "ad-at" : ""} x={i + 0.1} y={1 - value / most} width={0.8} height={value / most} />)}
        </svg>
        <input
          type="range" min={0} max={all - 1} value={at ?? all - 1} style={{ "--bars": all }} aria-label={`${name}, ${unit}`} aria-valuetext={said(at ?? all - 1)}
          onFocus={(event) => event.currentTarget.matches(":focus-visible") && onPoint(at ?? all - 1)}
          onInput={(event) => onPoint(event.currentTarget.valueAsNumber)}
          onKeyDown={(event) => event.key === "Enter" && at !== null && onChoose?.(days[at]!)}
          onBlur={() => onPoint(null)}
        />
      </div>
      <div class="ad-dates"><span>{shortDay(days[0]!)}</span>{all > 1 && <span>{shortDay(days[all - 1]!)}</span>}</div>
    </div>
  );
}
