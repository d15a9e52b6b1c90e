/** Images that go with a prompt. The hub looks at their bytes, and has the last word on what is one. */

import { fetchFile, sessionPath } from "./api";

export const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
export const MOST_IMAGES = 4;
export const MOST_BYTES = 2.5 * 1024 * 1024;

export interface Picked {
  /** `data:`, so that it can be shown and sent as it is. */
  url: string;
  bytes: number;
}

/** What cannot go with a prompt, and why; empty when all of it can. */
export function refusalOf(files: readonly Blob[], picked: readonly Picked[]): string {
  if (!files.every((file) => TYPES.includes(file.type))) return "Only PNG, JPEG, GIF and WebP images can be sent.";
  if (files.length + picked.length > MOST_IMAGES) return `At most ${MOST_IMAGES} images go with a prompt.`;
  const bytes = [...files.map((file) => file.size), ...picked.map((one) => one.bytes)].reduce(
    (sum, size) => sum + size,
    0,
  );
  return bytes > MOST_BYTES ? "The images of a prompt have at most 2.5 MB together." : "";
}

/** As the hub takes it. */
export const base64Of = ({ url }: Picked): string => url.slice(url.indexOf(",") + 1);

export function pick(file: Blob): Promise<Picked> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done({ url: reader.result as string, bytes: file.size });
    reader.onerror = () => failed(new Error("The image cannot be read."));
    reader.readAsDataURL(file);
  });
}

const fetched = new Map<string, Promise<Picked>>();
const MOST_KEPT = 50;

/** One that the session keeps. Its name says what is in it, so it never changes. */
export function imageOf(session: string, name: string): Promise<Picked> {
  const path = sessionPath(session, `images/${encodeURIComponent(name)}`);
  const known = fetched.get(path) ?? fetchFile(path).then(pick);
  fetched.delete(path);
  fetched.set(path, known);
  known.catch(() => fetched.delete(path));
  const oldest = fetched.keys().next().value;
  if (fetched.size > MOST_KEPT && oldest !== undefined) fetched.delete(oldest);
  return known;
}
