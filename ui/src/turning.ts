/** Signs of those that work turn in step: else every frame would have one of them to draw. */

const TURN = "turn";

export function turnInStep(): void {
  document.addEventListener("animationstart", ({ animationName, target }) => {
    if (animationName !== TURN) return;
    for (const animation of (target as Element).getAnimations())
      if (animation instanceof CSSAnimation && animation.animationName === TURN) animation.startTime = 0;
  });
}
