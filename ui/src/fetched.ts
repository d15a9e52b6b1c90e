import { useEffect, useState } from "preact/hooks";
import { ask } from "./api";

/** What the hub answers at `path`, asked again whenever `stamp` changes and every `everyMs`. */
export function useFetched<T>(path: string, stamp: string, everyMs = 0): { value: T | undefined; trouble: string } {
  const [value, setValue] = useState<T>();
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    let wanted = true;
    const look = () =>
      ask<T>("GET", path).then(
        (answer) => wanted && (setValue(answer), setTrouble("")),
        (error: Error) => wanted && setTrouble(error.message),
      );
    void look();
    const timer = everyMs ? setInterval(() => document.visibilityState === "visible" && void look(), everyMs) : undefined;
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, [path, stamp, everyMs]);
  return { value, trouble };
}
