/** The fonts that the page brings. A terminal measures its letters once: they are there before the first one is shown. */

const LONGEST_MS = 2000;
const FONTS = ['13px "Inter"', '13px "JetBrains Mono"', 'bold 13px "JetBrains Mono"'];

export async function fontsLoaded(): Promise<void> {
  const late = new Promise<void>((done) => setTimeout(done, LONGEST_MS));
  const all = Promise.all(FONTS.map((font) => document.fonts.load(font)));
  await Promise.race([late, all.then(() => undefined).catch(() => undefined)]);
}
