import { defineConfig } from "vitest/config";
import { appFiles } from "./app/files.js";

export default defineConfig({
  base: "/",
  plugins: [appFiles()],
  build: {
    outDir: "../src/hitchpost/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // a part that comes later is one file: a style that has failed once would not be tried again
    cssCodeSplit: false,
    chunkSizeWarningLimit: 600,
    modulePreload: { polyfill: false },
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
  },
  test: { css: { include: /tokens\.css/ } },
});
