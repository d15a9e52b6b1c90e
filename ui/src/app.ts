/** The page as an app: it opens without the hub, too, and says that it is away. */

export function installWorker(): void {
  // no browser has to have it, and none lets pages do it in a private window
  addEventListener("load", () => void navigator.serviceWorker?.register("/sw.js").catch(() => undefined));
}
