/** One request to the hub, and its errors. Nothing else in the page fetches. */

import type { ErrorBody } from "./shapes";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
    /** The field of the request that is wrong; empty when it is not one alone. */
    readonly field = "",
  ) {
    super(message);
  }
}

/** What went wrong, and what to do about it where the hub knows. */
export const reasonOf = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof ApiError && error.hint ? `${message}; ${error.hint}` : message;
};

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

let credentials: RequestCredentials = "omit";

/** Whether cookies go with requests: those of a proxy in front of the hub. */
export function sendCookies(are: boolean): void {
  credentials = are ? "same-origin" : "omit";
}

/** The hub's answer when it is no error. Cookies are neither sent nor taken, unless a proxy has signed this page in. */
export async function request(method: Method, path: string, body?: unknown, token = ""): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (method !== "GET") headers["content-type"] = "application/json";
  const wanted: RequestInit = { method, headers, credentials, cache: "no-store", redirect: "error" };
  if (body !== undefined) wanted.body = JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(path, wanted);
  } catch {
    throw new ApiError(0, "no_hub", "the hub does not answer", "hitch up starts it");
  }
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

/** What the hub answers in JSON; undefined when it has nothing to say. */
export async function requestJson<T>(method: Method, path: string, body?: unknown, token = ""): Promise<T> {
  const answer = await request(method, path, body, token);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as ErrorBody;
    return new ApiError(answer.status, error.code, error.message, error.hint ?? "", error.field ?? "");
  } catch {
    return new ApiError(answer.status, "failed", `the hub answered ${answer.status}`, "");
  }
}
