/** What the service says: the JSON at an address, and of itself. */
import { useCallback, useEffect, useState } from "preact/hooks";
import type { InterfaceBody } from "../../api";
import { type Api, type ApiError, asApiError } from "./api";

const AGAIN = 2000; // milliseconds between two looks

export interface Loaded<T> {
  data: T | null;
  problem: ApiError | null;
  reload: () => void;
}

/** The JSON at this address. While another one is loading, the data is null. */
export function useLoaded<T>(api: Api, path: string): Loaded<T> {
  const [found, setFound] = useState<{ path: string; data: T | null; problem: ApiError | null }>({ path, data: null, problem: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const aborter = new AbortController();
    api.json<T>(path, { signal: aborter.signal }).then(
      (data) => setFound({ path, data, problem: null }),
      (error: unknown) => aborter.signal.aborted || setFound({ path, data: null, problem: asApiError(error) }),
    );
    return () => aborter.abort();
  }, [api, path, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const current = found.path === path;
  return { data: current ? found.data : null, problem: current ? found.problem : null, reload };
}

/** What is still being made is asked for until it is there. */
export function useInterface(api: Api): Loaded<InterfaceBody> {
  const loaded = useLoaded<InterfaceBody>(api, "v1/interface");
  const { data, reload } = loaded;
  useEffect(() => {
    if (!data?.preparing && data?.index !== null) return;
    const timer = window.setTimeout(reload, AGAIN);
    return () => window.clearTimeout(timer);
  }, [data]);
  return loaded;
}
