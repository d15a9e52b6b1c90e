/** What was sent to a session from this tab, which the arrow keys bring back. */

const MOST_KEPT = 50;

export function keptOf(id: string): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(`prompts ${id}`) ?? "[]") as string[];
  } catch {
    return [];
  }
}

export function keep(id: string, text: string): void {
  const kept = [...keptOf(id).filter((prompt) => prompt !== text), text].slice(-MOST_KEPT);
  sessionStorage.setItem(`prompts ${id}`, JSON.stringify(kept));
}
