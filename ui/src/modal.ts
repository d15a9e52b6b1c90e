/** A dialog that is open as long as the page's state says so. */

import type { Ref } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Modal {
  ref: Ref<HTMLDialogElement>;
  onCancel: (event: Event) => void;
  onClose: () => void;
}

/** `leave` is called when a person closes it. What the page closed itself may be open again when that is told. */
export function useModal(open: boolean, leave: () => void): Modal {
  const ref = useRef<HTMLDialogElement>(null);
  const byPage = useRef(false);
  // together with what else the page shows then: keys that come next are meant for that
  useLayoutEffect(() => {
    const box = ref.current;
    if (!box || box.open === open) return;
    if (open) return box.showModal();
    byPage.current = true;
    box.close();
  }, [open]);
  const onClose = () => {
    if (byPage.current) byPage.current = false;
    else leave();
  };
  // Escape: the browser tells of the end only later, when the next key may have opened something else
  const onCancel = (event: Event) => {
    if (event.target === ref.current) leave();
  };
  return { ref, onCancel, onClose };
}
