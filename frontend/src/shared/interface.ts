/** What the service says of itself; `load` asks again. What is still being made is asked for until it is there. */
import { useEffect, useState } from "preact/hooks";
import type { InterfaceBody } from "../../api";
import { type Api, type ApiError, asApiError } from "./api";

const AGAIN = 2000; // milliseconds between two looks

type State = { known: InterfaceBody | null; problem: ApiError | null };

export function useInterface(api: Api): State & { load: () => Promise<void> } {
  const [state, set] = useState<State>({ known: null, problem: null });
  const load = async () => {
    try {
      set({ known: await api.json<InterfaceBody>("v1/interface"), problem: null });
    } catch (error) {
      set({ known: null, problem: asApiError(error) });
    }
  };
  useEffect(() => void load(), [api]);
  useEffect(() => {
    if (!state.known?.preparing && state.known?.index !== null) return;
    const timer = window.setTimeout(load, AGAIN);
    return () => window.clearTimeout(timer);
  }, [state.known]);
  return { ...state, load };
}
