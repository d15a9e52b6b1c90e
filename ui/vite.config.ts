import { defineConfig } from "vite";
import { appFiles } from "./app/files.js";

export default defineConfig({
  base: "/",
  plugins: [appFiles()],
  build: {
    outDir: "../src/hitchpost/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});
