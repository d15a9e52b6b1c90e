/**
 * Signing in: by the code of a link, once; after that by a secret that this browser keeps for this very address, port
 * included. The hub proves itself before it is told anything, each time that the connection is made anew. Without a
 * secret, an authenticating proxy in front of the hub may have signed this browser in.
 */

import { browserSecret, decoded, type Exchange, encoded, isTheHub, newNonce, pageProof } from "./proof";
import { ApiError, request, requestJson, sendCookies } from "./request";
import type { HubProof, SignedIn, Ticket } from "./shapes";

const KEPT = "sign-in";
const SIGNED_OUT = new ApiError(401, "not_signed_in", "this page is not signed in", "hitch up prints a link");
const NOT_THE_HUB = new ApiError(0, "not_the_hub", "the server at this address has not proved that it is your hub", "");

interface Kept {
  id: string;
  secret: string;
}

let entry: Promise<SignedIn> | undefined;
/** How this page was let in last. A link lets in once: without its secret, there is nothing to ask for. */
let way: "link" | "proxy" | undefined;

/** Who we are, and a token for it; from this moment until `leave`. Raises `ApiError`. */
export function entered(): Promise<SignedIn> {
  if (!entry) {
    const made = enter();
    entry = made;
    made.catch(() => entry === made && leave());
  }
  return entry;
}

/** The hub is gone, or may be: who answers next has to prove itself before it is sent anything. */
export function leave(): void {
  entry = undefined;
}

/** A ticket for a WebSocket: the one that came with the sign-in, while it was not used. */
export async function takeTicket(): Promise<string> {
  const me = await entered();
  const ticket = me.ticket;
  me.ticket = "";
  return ticket || (await requestJson<Ticket>("POST", "/api/ws-ticket", undefined, me.token)).ticket;
}

export async function endSignIn(): Promise<void> {
  const me = await entered();
  await request("POST", "/api/sign-out", undefined, me.token);
  forget(me.id);
}

/** The hub has said that this browser is not known any more. A tab may have signed it in anew by now. */
export function forget(id: string): void {
  if (kept()?.id === id) localStorage.removeItem(KEPT);
}

/** A link that was used before still opens the page for who is signed in already. */
async function enter(): Promise<SignedIn> {
  const code = takeCode();
  if (code) {
    try {
      return await byCode(code);
    } catch (error) {
      if (!kept() && error !== NOT_THE_HUB) throw error;
    }
  }
  const known = kept();
  if (!known && way === "link") throw SIGNED_OUT;
  if (!known) return await byProxy();
  const { answer } = await proved(known.id, decoded(known.secret));
  way = "link";
  return answer;
}

/** Calls `wake` when a page that is not signed in may be let in: another tab has signed in, or a proxy may have. */
export function onSignIn(wake: () => void): void {
  addEventListener("storage", (event) => event.key === KEPT && event.newValue && wake());
  document.addEventListener("visibilitychange", () => {
    if (way !== "link" && document.visibilityState === "visible") wake();
  });
}

/** The proxy knows this browser by a cookie, which goes with this and all that follows; the hub has set none. */
async function byProxy(): Promise<SignedIn> {
  try {
    sendCookies(true);
    const answer = await requestJson<SignedIn>("POST", "/api/sign-in/proxy");
    way = "proxy";
    return answer;
  } catch (error) {
    sendCookies(false);
    throw error instanceof ApiError && error.status === 401 ? SIGNED_OUT : error;
  }
}

async function byCode({ id, secret }: Kept): Promise<SignedIn> {
  const { answer, exchange } = await proved(id, decoded(secret));
  const made: Kept = { id: answer.id, secret: encoded(await browserSecret(decoded(secret), exchange)) };
  localStorage.setItem(KEPT, JSON.stringify(made));
  way = "link";
  return answer;
}

async function proved(id: string, secret: Uint8Array): Promise<{ answer: SignedIn; exchange: Exchange }> {
  const asked = { id, nonce: newNonce(), origin: location.origin };
  const hub = await challenged(asked);
  const exchange = { id, pageNonce: asked.nonce, hubNonce: hub.nonce, origin: asked.origin };
  if (!(await isTheHub(secret, exchange, hub.proof))) throw NOT_THE_HUB;
  const proof = { nonce: hub.nonce, proof: await pageProof(secret, exchange) };
  const answer = await requestJson<SignedIn>("POST", "/api/sign-in", proof);
  return { answer, exchange };
}

/** Our hub always answers this, unless it cannot read its files: any other answer is somebody else's. */
async function challenged(asked: object): Promise<HubProof> {
  try {
    const found = await requestJson<Partial<HubProof>>("POST", "/api/sign-in/challenge", asked);
    if (typeof found.nonce === "string" && typeof found.proof === "string")
      return { nonce: found.nonce, proof: found.proof };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 0 || error.status === 503)) throw error;
  }
  throw NOT_THE_HUB;
}

function kept(): Kept | undefined {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "null") as Partial<Kept> | null;
    return found?.id && found.secret ? { id: found.id, secret: found.secret } : undefined;
  } catch {
    return undefined;
  }
}

/** The code of the address, which is then gone from it and from the history. */
function takeCode(): Kept | undefined {
  const [id, secret] = (new URLSearchParams(location.hash.slice(1)).get("code") ?? "").split(".");
  if (id) history.replaceState(null, "", `${location.pathname}${location.search}`);
  return id && secret ? { id, secret } : undefined;
}
