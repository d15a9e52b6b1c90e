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
export async function request(
  method: Method,
  path: string,
  body?: unknown,
  token = "",
  accept = "application/json",
): Promise<Response> {
  const headers: Record<string, string> = { accept };
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (method !== "GET") headers["content-type"] = "application/json";
  const wanted: RequestInit = { method, headers, credentials, cache: "no-store", redirect: "error" };
  if (body !== undefined) wanted.body = JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(path, wanted);
  } catch {
    throw noHub();
  }
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

/** What the hub answers in JSON; undefined when it has nothing to say. */
export async function requestJson<T>(method: Method, path: string, body?: unknown, token = ""): Promise<T> {
  const answer = await request(method, path, body, token);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** What the hub answers in JSON, in the end. A first line that comes before is told at once. */
export async function requestInSteps<T>(
  path: string,
  body: unknown,
  token: string,
  tell: (first: T) => void,
): Promise<T> {
  const answer = await request("POST", path, body, token, "application/x-ndjson, application/json");
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const next = () => reader.read().catch(() => Promise.reject(noHub()));
  let text = "";
  let isTold = false;
  for (let part = await next(); !part.done; part = await next()) {
    text += part.value;
    const end = text.indexOf("\n");
    if (isTold || end < 0) continue;
    isTold = true;
    tell(JSON.parse(text.slice(0, end)) as T);
    text = text.slice(end + 1);
  }
  if (!text) throw noHub();
  const last = JSON.parse(text) as T | ErrorBody;
  if (isError(last)) throw told(answer.status, last);
  return last;
}

const noHub = (): ApiError => new ApiError(0, "no_hub", "the hub does not answer", "hitch up starts it");

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    return told(answer.status, (await answer.json()) as ErrorBody);
  } catch {
    return new ApiError(answer.status, "failed", `the hub answered ${answer.status}`, "");
  }
}

const isError = (value: unknown): value is ErrorBody => typeof value === "object" && value !== null && "error" in value;

const told = (status: number, { error }: ErrorBody): ApiError =>
  new ApiError(status, error.code, error.message, error.hint ?? "", error.field ?? "");
