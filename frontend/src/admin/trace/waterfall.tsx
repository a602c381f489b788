/** The steps of an answer as bars by time, with the calls to models inside; an open step shows its prompts and values. */
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { Trace, TraceStep } from "../../../api";
import { useAdmin } from "../data";
import { Bar, namesOf } from "./candidates";
import { StepDetails } from "./step";

/** `scale` is how many milliseconds the width stands for, if not as many as the answer took. */
export function Waterfall({ trace, scale = trace.ms }: { trace: Trace; scale?: number }): JSX.Element {
  const { trace: t, ms } = useAdmin();
  const whole = Math.max(scale, 0.001);
  const names = namesOf(trace);
  const power = 10 ** Math.floor(Math.log10(whole));
  const tick = whole < 2 * power ? power / 2 : whole < 5 * power ? power : 2 * power;
  const ticks = Array.from({ length: Math.ceil((0.97 * whole) / tick) }, (_, i) => i * tick); // no label at the right edge
  return (
    <div class="tr-fall" style={{ "--tick": tick / whole }}>
      <div class="tr-axis" aria-hidden="true">
        <span />
        <span class="tr-ticks">{ticks.map((at) => <span key={at} style={{ "--from": at / whole }}>{ms(at)}</span>)}</span>
        <span class="tr-ms">{ms(whole)} ms</span>
      </div>
      {[...Map.groupBy(trace.steps, (step) => step.group).values()].map((steps) => (
        <div key={steps[0]!.step} class={steps.length > 1 ? "tr-group tr-parallel" : "tr-group"} {...(steps.length > 1 ? { role: "group", "aria-label": t.parallel } : {})}>
          {steps.map((step) => <Row key={step.step} step={step} whole={whole} first={trace.first_text} names={names} />)}
        </div>
      ))}
    </div>
  );
}

function Row({ step, whole, first, names }: { step: TraceStep; whole: number; first: number | null; names: Map<string, string> }): JSX.Element {
  const { trace: t, ms } = useAdmin();
  const [open, setOpen] = useState(false);
  const id = useId();
  const failed = step.error !== "";
  return (
    <div class="tr-step">
      <button type="button" class="tr-row" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}
        aria-label={`${t.stepLabel(step.step, ms(step.start), ms(step.end), failed)}. ${t.does[step.step] ?? ""}`}>
        <span class={failed ? "tr-name tr-failed" : "tr-name"}>{step.step}</span>
        <span class="tr-track">
          <Bar from={step.start / whole} to={step.end / whole} kind={failed ? "error" : "step"} />
          {step.calls.map((call, i) => <Bar key={i} from={call.start / whole} to={call.end / whole} kind={call.error ? "call-error" : `call tr-${call.kind}`} />)}
          {step.step === "synthesize" && first !== null && <Bar from={first / whole} to={first / whole} kind="first" />}
        </span>
        <span class="tr-ms">{ms(step.end - step.start)} ms</span>
        <span class="tr-does">{t.does[step.step]}</span>
      </button>
      <div id={id}>{open && <StepDetails step={step} first={step.step === "synthesize" ? first : null} names={names} />}</div>
    </div>
  );
}
