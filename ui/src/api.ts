/** REST, as who is signed in. */

import { ApiError, request, type Method } from "./request";
import { entered, leave } from "./signin";

export { ApiError } from "./request";

export async function ask<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const answer = await fetched(method, path, body);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** The answer as a file. A browser takes it to its disk while it comes, however large it is. */
export async function fetchFile(path: string): Promise<Blob> {
  return (await fetched("GET", path)).blob();
}

/** A token that the hub does not know any more is replaced once: that of a page which slept for long may be. */
async function fetched(method: Method, path: string, body?: unknown): Promise<Response> {
  const me = await entered();
  try {
    return await request(method, path, body, me.token);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if ((await entered()) === me) leave();
    return request(method, path, body, (await entered()).token);
  }
}

export const sessionPath = (id: string, what = ""): string => `/api/sessions/${encodeURIComponent(id)}${what && `/${what}`}`;
