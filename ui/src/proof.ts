/** The bytes of a sign-in, as docs/protocol.md has them: both sides prove that they know a secret, and neither sends it. */

export interface Exchange {
  id: string;
  pageNonce: string;
  hubNonce: string;
  origin: string;
}

export function newNonce(): string {
  return encoded(crypto.getRandomValues(new Uint8Array(24)));
}

/** Whether what the hub answered shows that it knows what belongs to the secret. */
export async function isTheHub(secret: Uint8Array, exchange: Exchange, proof: string): Promise<boolean> {
  const key = await imported(await mac(secret, "hitchpost hub key"), "verify");
  try {
    return await crypto.subtle.verify("HMAC", key, decoded(proof), bytes(text("hub", exchange)));
  } catch {
    return false;
  }
}

export async function pageProof(secret: Uint8Array, exchange: Exchange): Promise<string> {
  const pageKey = await mac(secret, "hitchpost page key");
  const storedKey = new Uint8Array(await crypto.subtle.digest("SHA-256", pageKey));
  const mask = await mac(storedKey, text("page", exchange));
  return encoded(pageKey.map((byte, at) => byte ^ mask[at]!));
}

/** What this browser is known by after a launch code has signed it in. */
export function browserSecret(codeSecret: Uint8Array, exchange: Exchange): Promise<Uint8Array<ArrayBuffer>> {
  return mac(codeSecret, text("browser", exchange));
}

/** Base64 for addresses, without padding. */
export function encoded(data: Uint8Array): string {
  return btoa(String.fromCharCode(...data))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Raises an error when it is none. */
export function decoded(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
}

function text(purpose: string, { id, pageNonce, hubNonce, origin }: Exchange): string {
  return ["hitchpost sign-in 1", purpose, id, pageNonce, hubNonce, origin].join("\n");
}

const bytes = (words: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(words);

const imported = (key: Uint8Array, use: "sign" | "verify"): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", new Uint8Array(key), { name: "HMAC", hash: "SHA-256" }, false, [use]);

async function mac(key: Uint8Array, words: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", await imported(key, "sign"), bytes(words)));
}
