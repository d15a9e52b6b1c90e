import type { Session } from "../shapes";

/** How much it has changed, where somebody has counted and it has a worktree: elsewhere, others change something too. */
export function Size({ session: { changes, workspace } }: { session: Session }) {
  if (!changes?.files || workspace.id === null) return null;
  const files = changes.files === 1 ? "1 file" : `${changes.files} files`;
  return (
    <span class="counts" title={`${files} changed, counted ${new Date(changes.at).toLocaleString()}`}>
      <ins>+{changes.added}</ins> <del>−{changes.deleted}</del>
    </span>
  );
}
