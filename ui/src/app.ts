/** The page as an app: it opens without the hub, too, and says that it is away. No browser has to be able to do that. */

/**
 * Keep the files of the hub's own version; called when the hub has proved itself, and never before: whoever else has its
 * port by then cannot replace them. A page that was just opened and is older than the hub is loaded anew.
 */
export async function keepPage(version: string, isFresh: boolean): Promise<void> {
  const workers = navigator.serviceWorker;
  if (!workers || !version) return;
  const script = `/sw.js?${version}`;
  const isOlder = workers.controller && !workers.controller.scriptURL.endsWith(script);
  if (isOlder && isFresh) workers.addEventListener("controllerchange", () => location.reload(), { once: true });
  try {
    // its cached script is asked for, not the network: the browser looks for another one by itself at most once a day
    await workers.register(script, { updateViaCache: "all" });
  } catch {
    // the next time will do
  }
}
