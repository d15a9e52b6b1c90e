import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const read = (name) => readFileSync(new URL(name, import.meta.url));

export function appFiles() {
  return {
    name: "app-files",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const manifest = JSON.parse(read("manifest.json"));
        const icons = [];
        for (const icon of manifest.icons) {
          if (icon.src.startsWith("/")) continue;
          const made = this.emitFile({ type: "asset", name: icon.src, source: read(icon.src) });
          icon.src = `/${this.getFileName(made)}`;
          icons.push(icon.src);
        }
        this.emitFile({ type: "asset", fileName: "manifest.webmanifest", source: JSON.stringify(manifest) });
        const kept = Object.keys(bundle)
          .filter((name) => /^assets\/.+\.(js|css|woff2)$/.test(name))
          .map((name) => `/${name}`)
          .concat(icons);
        const version = createHash("sha256").update(JSON.stringify(kept.sort())).digest("hex").slice(0, 12);
        const worker = read("sw.js")
          .toString()
          .replace('"VERSION"', JSON.stringify(version))
          .replace('["FILES"]', JSON.stringify(kept));
        this.emitFile({ type: "asset", fileName: "sw.js", source: worker });
      },
    },
  };
}
