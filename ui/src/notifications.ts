/**
 * Being told by this browser. The hub decides what and when; an open page shows it, and with Web Push the browser does
 * when no page is open. Both show it through the service worker, under the message's id, so it is there once.
 */

import { signal } from "@preact/signals";
import { question, renaming } from "./actions";
import { ask } from "./api";
import { goFromDialog } from "./router";
import type { NotificationMessage, SubscriptionMade } from "./shapes";

export type Permission = NotificationPermission | "unavailable";

const PATH = "/api/notifications/subscriptions";
const SUBSCRIBED = "push subscription";

/** What the person has allowed this page. Browsers know notifications only at safe addresses. */
export const permission = signal<Permission>("Notification" in globalThis ? Notification.permission : "unavailable");
/** Whether this browser is told when no page is open. */
export const pushed = signal(localStorage.getItem(SUBSCRIBED) !== null);

/** Ask the person. Browsers want a click for that. */
export async function allow(): Promise<void> {
  permission.value = await Notification.requestPermission();
}

export async function show({ to, id, title, body, sessionId }: NotificationMessage): Promise<void> {
  if (to !== "browser" || permission.value !== "granted") return;
  const worker = await navigator.serviceWorker?.ready;
  await worker?.showNotification(title, { body, tag: id, data: { session: sessionId } });
}

/** A notification was clicked while a page was open: the worker says which session to show, and no dialog is in the way. */
export function followNotifications(): void {
  navigator.serviceWorker?.addEventListener("message", ({ data }: MessageEvent<{ open?: string }>) => {
    if (typeof data.open !== "string") return;
    question.value = renaming.value = null;
    goFromDialog({ session: data.open || null, grid: false });
  });
}

export const canPush = (): boolean => "PushManager" in globalThis;

/** Have the browser's push service bring messages. Throws what the browser says against it. */
export async function subscribe(key: string): Promise<void> {
  const worker = await navigator.serviceWorker.ready;
  const wanted = { userVisibleOnly: true, applicationServerKey: key };
  let made: PushSubscription;
  try {
    made = await worker.pushManager.subscribe(wanted);
  } catch (error) {
    const older = await worker.pushManager.getSubscription();
    if (!older) throw error;
    await older.unsubscribe(); // it was made for the key of another hub
    made = await worker.pushManager.subscribe(wanted);
  }
  const { endpoint, keys } = made.toJSON();
  const { id } = await ask<SubscriptionMade>("POST", PATH, { endpoint, keys });
  localStorage.setItem(SUBSCRIBED, id);
  pushed.value = true;
}

export async function unsubscribe(): Promise<void> {
  const id = localStorage.getItem(SUBSCRIBED);
  localStorage.removeItem(SUBSCRIBED);
  pushed.value = false;
  const worker = await navigator.serviceWorker.ready;
  await (await worker.pushManager.getSubscription())?.unsubscribe();
  if (id) await ask("DELETE", `${PATH}/${encodeURIComponent(id)}`);
}
