/** The page as an app: it opens without the hub, too, and says that it is away. No browser has to be able to do that. */

export function installWorker(): void {
  addEventListener("load", () => void navigator.serviceWorker?.register("/sw.js").catch(() => undefined));
}

/** The hub is there, perhaps a newer one: a browser by itself looks only now and then. */
export async function updateWorker(): Promise<void> {
  try {
    await (await navigator.serviceWorker?.getRegistration())?.update();
  } catch {
    // the next time will do
  }
}
