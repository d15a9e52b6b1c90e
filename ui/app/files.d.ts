import type { Plugin } from "vite";

/** Adds what makes the page an app: the manifest, its icons, and the service worker with the names of the files it keeps. */
export function appFiles(): Plugin;
