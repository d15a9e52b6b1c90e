/** REST, as who is signed in. */

import { ApiError, type Method, request, requestInSteps, requestJson } from "./request";
import { entered, leave } from "./signin";

export { ApiError, reasonOf } from "./request";

export const ask = <T>(method: Method, path: string, body?: unknown): Promise<T> =>
  asMe((token) => requestJson<T>(method, path, body, token));

/** What is asked for with POST, and takes its time: `tell` gets what there is before the end. */
export const askInSteps = <T>(path: string, body: unknown, tell: (first: T) => void): Promise<T> =>
  asMe((token) => requestInSteps<T>(path, body, token, tell));

/** The answer as a file. A browser takes it to its disk while it comes, however large it is. */
export const fetchFile = (path: string): Promise<Blob> =>
  asMe(async (token) => (await request("GET", path, undefined, token)).blob());

/** A token that the hub does not know any more is replaced once: that of a page which slept for long may be. */
async function asMe<T>(send: (token: string) => Promise<T>): Promise<T> {
  const me = await entered();
  try {
    return await send(me.token);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if ((await entered()) === me) leave();
    return send((await entered()).token);
  }
}

export const sessionPath = (id: string, what = ""): string =>
  `/api/sessions/${encodeURIComponent(id)}${what && `/${what}`}`;
