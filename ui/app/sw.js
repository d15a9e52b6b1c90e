/*
 * Keeps the page's own files, so that it opens when the hub does not answer, and says so. Nothing else is kept: no
 * answer of the hub, and no request that carries who asks.
 *
 * The page always comes from here, and never from whatever answers at the hub's address: only a hub that has proved
 * itself brings another version. Nothing else at this address is ever opened, by no link, form or frame: whoever has the
 * port could answer with a script that reads what the browser keeps here. Each version keeps a whole set of files, and
 * takes over from the last one at once: no other version's file is had from the network either.
 *
 * It also shows what the hub pushes, each message once by its id, and opens the session that a notification is about.
 */

const KEPT = `page ${"VERSION"}`;
const PAGE = "/";
const ASSETS = "/assets/";
const FILES = ["FILES"];

addEventListener("install", (event) => {
  skipWaiting();
  const wanted = [PAGE, ...FILES].map((path) => new Request(path, { credentials: "omit", cache: "reload" }));
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(wanted)));
});

addEventListener("activate", (event) => {
  const forget = (names) => Promise.all(names.filter((name) => name !== KEPT).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(forget));
});

addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (origin !== location.origin) return;
  const isOpened = event.request.mode === "navigate";
  if (isOpened && (pathname !== PAGE || event.request.method !== "GET"))
    event.respondWith(Response.redirect(PAGE, 303));
  else if (isOpened || FILES.includes(pathname))
    event.respondWith(keptOf(pathname).then((found) => (found.ok ? found : fetch(event.request))));
  else if (pathname.startsWith(ASSETS)) event.respondWith(Response.error());
});

/** An error where the browser has thrown it away. (To open the set would make an empty one, after the next version has
    forgotten it.) */
async function keptOf(path) {
  return (await caches.match(path, { cacheName: KEPT })) ?? Response.error();
}

addEventListener("push", (event) => {
  const { id, title, body, session } = event.data.json();
  event.waitUntil(registration.showNotification(title, { body, tag: id, data: { session } }));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openSession(event.notification.data?.session ?? ""));
});

/** In a page that is open, or in a new one. */
async function openSession(session) {
  const [page] = await clients.matchAll({ type: "window", includeUncontrolled: true });
  if (page) {
    page.postMessage({ open: session });
    await page.focus();
  } else await clients.openWindow(session ? `${PAGE}?${new URLSearchParams({ session })}` : PAGE);
}
