import { X } from "lucide";
import { Part } from "../later";
import { useModal } from "../modal";
import { leaveDialog, route } from "../router";
import { Icon } from "./Icon";
import { Later } from "./Later";

const SUMS = new Part(() => import("./UsageSums").then((found) => found.UsageSums));

/** It is open before what it shows is there: keys that come next are meant for it. */
export function UsageView() {
  const by = route.value.usage;
  const leave = () => leaveDialog("usage");
  return (
    <dialog {...useModal(by !== false, leave)} class="usage" aria-labelledby="usage-title">
      <header>
        <h2 id="usage-title">Usage</h2>
        <button type="button" class="icon" aria-label="Close the usage" onClick={leave}>
          <Icon of={X} />
        </button>
      </header>
      {by ? <Later part={SUMS} of={{ by }} /> : null}
    </dialog>
  );
}
