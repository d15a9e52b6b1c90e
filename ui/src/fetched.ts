/** What a component shows of the hub's answers. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api";

export interface Fetched<T> {
  /** The last answer, also while the hub has none. */
  value: T | undefined;
  trouble: string;
}

/** What the hub answers at `path`, if it is not empty, asked again whenever `stamp` changes and every `everyMs` while the page is visible. */
export function useFetched<T>(path: string, stamp: string, everyMs = 0): Fetched<T> {
  const [fetched, setFetched] = useState<Fetched<T>>({ value: undefined, trouble: "" });
  const fetcher = useRef<Fetcher<T> | null>(null);
  useEffect(() => {
    const made = new Fetcher<T>(path, setFetched);
    fetcher.current = made;
    const timer = everyMs
      ? setInterval(() => document.visibilityState === "visible" && made.again(), everyMs)
      : undefined;
    return () => {
      clearInterval(timer);
      made.end();
    };
  }, [path, everyMs]);
  useEffect(() => fetcher.current?.again(), [path, stamp, everyMs]);
  return fetched;
}

/** Asks for one answer at a time, however often it is told to: the last question is answered last. */
class Fetcher<T> {
  private busy = false;
  private stale = false;
  private over = false;
  private last: T | undefined;

  constructor(
    private readonly path: string,
    private readonly tell: (fetched: Fetched<T>) => void,
  ) {}

  again(): void {
    this.stale = this.path !== "";
    if (!this.busy) void this.ask();
  }

  end(): void {
    this.over = true;
  }

  private async ask(): Promise<void> {
    this.busy = true;
    while (this.stale && !this.over) {
      this.stale = false;
      const fetched = await ask<T>("GET", this.path).then(
        (value): Fetched<T> => ({ value, trouble: "" }),
        (error: Error): Fetched<T> => ({ value: this.last, trouble: error.message }),
      );
      this.last = fetched.value;
      if (!this.over) this.tell(fetched);
    }
    this.busy = false;
  }
}

/** The value, once it has not changed for a moment. */
export function useSoon<T>(value: T, afterMs: number): T {
  const [soon, setSoon] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSoon(value), afterMs);
    return () => clearTimeout(timer);
  }, [value, afterMs]);
  return soon;
}
