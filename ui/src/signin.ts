/** Signing in: a code in the address, once; after that the cookie. */

import { ApiError, ask, useToken } from "./api";
import { notify } from "./store";

interface SignedIn {
  role: string;
  csrf: string;
}

/** Our role, or null when the page has to be opened by a new link. Raises `ApiError` when the hub does not answer. */
export async function signIn(): Promise<string | null> {
  const code = takeCode();
  try {
    return remember(code ? await launched(code) : await ask<SignedIn>("GET", "/api/me"));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 429)) return null;
    throw error;
  }
}

/** A link that was used before still opens the page for who is signed in already. */
async function launched(code: string): Promise<SignedIn> {
  try {
    return await ask<SignedIn>("POST", "/api/launch", { code });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return ask<SignedIn>("GET", "/api/me");
    throw error;
  }
}

/** Sign every tab of this browser out. */
export async function signOut(): Promise<void> {
  try {
    await ask("POST", "/api/sign-out");
    location.reload();
  } catch (error) {
    notify((error as Error).message);
  }
}

function remember(answer: SignedIn): string {
  useToken(answer.csrf);
  return answer.role;
}

/** The code of the address, which is then gone from it and from the history. */
function takeCode(): string {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}
