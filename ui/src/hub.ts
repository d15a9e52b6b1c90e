/** Puts the connection, the store and the terminals together. */

import { batch } from "@preact/signals";
import { ApiError, ask } from "./api";
import { keepPage } from "./app";
import { connectChanges, onChanged, watchAgain } from "./changes";
import { Connection, linkAfter } from "./connection";
import { connectChats, followAgain, onChatLines } from "./following";
import { learnAgents } from "./handover";
import { loadAll } from "./later";
import { followNotifications, show } from "./notifications";
import { connectPresence } from "./presence";
import type { HubMessage, Session } from "./shapes";
import { entered, onSignIn } from "./signin";
import * as store from "./store";
import { nextFrame } from "./turns";
import { attachAll, connectViews, linkLost, onAttached, onFrame, onSize } from "./views";

const TICK_MS = 1000;
const AGAIN_MS = 1500;
const UNAUTHORIZED = 401;
/** How often what counts no seconds is looked at. */
const COARSE_MS = 15_000;

/** Told since the last frame: however many sessions change, the page is drawn once. */
let told: HubMessage[] = [];
let waiting: HubMessage[] | undefined;
let changes = 0;
let isFresh = true;
let retry: ReturnType<typeof setTimeout> | undefined;

const connection = new Connection({
  link(state) {
    const which = ++changes;
    if (state === "open") void refresh().then(() => which === changes && arrived());
    else {
      linkLost();
      store.link.value = state;
      if (state === "refused" || state === "stranger") void enter();
    }
  },
  message(message) {
    if (message.type === "session.attached") onAttached(message);
    else if (message.type === "terminal.size") onSize(message);
    else if (message.type === "chat.lines") onChatLines(message);
    else if (message.type === "workspace.changed") onChanged(message);
    else if (message.type === "notification") void show(message);
    else if (waiting) waiting.push(message);
    else if (told.push(message) === 1) nextFrame(applyTold);
  },
  frame: onFrame,
});

function applyTold(): void {
  const all = told;
  told = [];
  store.applyAll(all);
}

export async function begin(): Promise<void> {
  connectViews((message) => connection.send(message));
  connectChanges((wish) => connection.send(wish));
  connectChats((wish) => connection.send(wish));
  connectPresence((wish) => connection.send(wish));
  followNotifications();
  setInterval(tick, TICK_MS);
  addEventListener("hashchange", () => void enter());
  onSignIn(() => {
    if (store.link.peek() === "refused") void enter();
  });
  await enter();
}

function tick(): void {
  batch(() => {
    store.now.value = Date.now();
    if (store.now.value - store.minute.value >= COARSE_MS) store.minute.value = store.now.value;
  });
}

/**
 * Sign in, as often as it takes. A page may be open before its hub is. One that is signed out asks nobody: it is let in
 * again by a link that is opened in any tab, which wakes it.
 */
async function enter(): Promise<void> {
  clearTimeout(retry);
  try {
    const { role, may } = await entered();
    if (!store.role.value) store.keepTabs();
    store.role.value = role;
    store.may.value = may;
    connection.open();
    return;
  } catch (error) {
    store.link.value = linkAfter(error);
    if (store.link.value === "refused") store.role.value ??= null;
    if (error instanceof ApiError && error.status === UNAUTHORIZED) return;
  }
  retry = setTimeout(() => void enter(), AGAIN_MS);
}

function arrived(): void {
  store.link.value = "open";
  attachAll();
  watchAgain();
  followAgain();
  void learnAgents();
  loadAll();
  void entered().then(
    ({ page }) => {
      void keepPage(page, isFresh);
      isFresh = false;
    },
    () => undefined,
  );
}

/** Everything anew. What is told meanwhile comes after the answer, so nothing older replaces it. */
async function refresh(): Promise<void> {
  if (waiting) return;
  applyTold();
  waiting = [];
  try {
    const all = await ask<Session[]>("GET", "/api/sessions?all=true");
    batch(() => store.replaceAll(all));
  } catch {
    // the connection notices by itself when the hub is gone
  }
  const since = waiting;
  waiting = undefined;
  store.applyAll(since);
}
