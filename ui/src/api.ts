/** REST. A cookie says who asks; the token in a header proves that it is this page that asks. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

let csrf = "";

export function useToken(token: string): void {
  csrf = token;
}

export async function ask<T>(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  const wanted: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (method !== "GET") {
    headers["content-type"] = "application/json";
    headers["x-hitchpost-csrf"] = csrf;
    if (body !== undefined) wanted.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(path, wanted);
  } catch {
    throw new ApiError(0, "no_hub", "the hub does not answer", "hitch up starts it");
  }
  if (!answer.ok) throw await errorOf(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as { error: { code: string; message: string; hint?: string } };
    return new ApiError(answer.status, error.code, error.message, error.hint ?? "");
  } catch {
    return new ApiError(answer.status, "failed", `the hub answered ${answer.status}`, "");
  }
}

export const sessionPath = (id: string, what = ""): string => `/api/sessions/${encodeURIComponent(id)}${what && `/${what}`}`;
