/**
 * Signs of those that work turn in step, a few times a second. An animation that runs takes every frame of the page,
 * also those in which nothing turns, and what is typed waits for the frame after: none runs, all are set at once.
 */

const TURN = "turn";
const STEP_MS = 2000 / 12;

export function turnInStep(): void {
  const turning = new Set<Animation>();
  document.addEventListener("animationstart", ({ animationName, target }) => {
    if (animationName !== TURN) return;
    for (const animation of (target as Element).getAnimations())
      if (animation instanceof CSSAnimation && animation.animationName === TURN) {
        animation.pause();
        turning.add(animation);
      }
  });
  let steps = 0;
  setInterval(() => {
    steps++;
    for (const animation of turning)
      if (animation.playState === "paused") animation.currentTime = steps * STEP_MS;
      else turning.delete(animation);
  }, STEP_MS);
}
