/** What the service says: the JSON at an address, and of itself. */
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { InterfaceBody } from "../../api";
import { type Api, type ApiError, asApiError } from "./api";

const AGAIN = 2000; // milliseconds between two looks

export interface Loaded<T> {
  data: T | null;
  problem: ApiError | null;
  reload: () => void;
}

/** What this work gives, if there is any; done again for other `inputs`, until whose end the data is null. */
export function useWork<T>(work: ((signal: AbortSignal) => Promise<T>) | null, inputs: unknown[]): Loaded<T> {
  const asked = useMemo(() => ({}), inputs);
  const [found, setFound] = useState<{ asked: object; data: T | null; problem: ApiError | null }>({ asked, data: null, problem: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const aborter = new AbortController();
    work?.(aborter.signal).then(
      (data) => setFound({ asked, data, problem: null }),
      (error: unknown) => aborter.signal.aborted || setFound({ asked, data: null, problem: asApiError(error) }),
    );
    return () => aborter.abort();
  }, [asked, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const current = found.asked === asked;
  return { data: current ? found.data : null, problem: current ? found.problem : null, reload };
}

/** The JSON at this address. */
export function useLoaded<T>(api: Api, path: string): Loaded<T> {
  return useWork<T>((signal) => api.json<T>(path, { signal }), [api, path]);
}

/** What is still being made is asked for until it is there. */
export function useInterface(api: Api, path = "v1/interface"): Loaded<InterfaceBody> {
  const loaded = useLoaded<InterfaceBody>(api, path);
  const { data, reload } = loaded;
  useEffect(() => {
    if (!data?.preparing && data?.index !== null) return;
    const timer = window.setTimeout(reload, AGAIN);
    return () => window.clearTimeout(timer);
  }, [data]);
  return loaded;
}
