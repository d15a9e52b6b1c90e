import { useState } from "preact/hooks";
import { ask, reasonOf, sessionPath } from "../api";
import { useFetched } from "../fetched";
import { useModal } from "../modal";
import type { Finished, FinishPlan, Session } from "../shapes";
import { notify } from "../store";

type Step = "commit" | "merge" | "push" | "remove";

/** Commit, merge, push and remove the worktree: each only after it was said what will happen. */
export function Finish({ session, onClose }: { session: Session; onClose: () => void }) {
  const stamp = `${session.headline} ${session.since}`;
  const { value: plan, trouble } = useFetched<FinishPlan>(sessionPath(session.id, "finish"), stamp);
  const [message, setMessage] = useState<string | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<Step> | null>(null);
  const [state, setState] = useState<{ busy: boolean; trouble: string }>({ busy: false, trouble: "" });
  const steps = plan ? (chosen ?? sensible(plan)) : new Set<Step>();
  const toggle = (step: Step) => {
    const next = new Set(steps);
    if (!next.delete(step)) next.add(step);
    setChosen(next);
  };
  const finish = async () => {
    setState({ busy: true, trouble: "" });
    try {
      const wish = Object.fromEntries([...steps].map((step) => [step, true]));
      const done = await ask<Finished>("POST", sessionPath(session.id, "finish"), {
        ...wish,
        ...(message === null ? {} : { message }),
      });
      notify(summary(done), "note");
      onClose();
    } catch (error) {
      setState({ busy: false, trouble: reasonOf(error) });
    }
  };
  return (
    <dialog {...useModal(true, onClose)} class="finish-dialog" aria-labelledby="finish-title">
      <h2 id="finish-title">Finish {session.name}</h2>
      {plan ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void finish();
          }}
        >
          {plan.working ? (
            <p class="trouble">The agent is still working. Wait until it has finished, or stop it.</p>
          ) : null}
          {STEPS.map(([step, says]) => {
            const { text, why } = says(plan, steps);
            return (
              <label key={step} class={why ? "step off" : "step"}>
                <input
                  type="checkbox"
                  checked={steps.has(step) && !why}
                  disabled={!!why}
                  onChange={() => toggle(step)}
                />
                <span>
                  {text}
                  {why ? <small>{why}</small> : null}
                </span>
              </label>
            );
          })}
          {steps.has("commit") ? (
            <label class="message">
              Message
              <textarea
                rows={2}
                value={message ?? plan.message}
                onInput={(event) => setMessage(event.currentTarget.value)}
              />
            </label>
          ) : null}
          {plan.pull_request ? (
            <p class="quiet">
              For a pull request, after pushing: <code>{plan.pull_request.join(" ")}</code>
            </p>
          ) : null}
          <p class="quiet">What is not committed is kept in a snapshot first. Nothing is lost.</p>
          <p role="status" class="trouble">
            {state.trouble}
          </p>
          <div class="buttons">
            <button type="button" onClick={onClose}>
              Close
            </button>
            <button type="submit" class="primary" disabled={state.busy || steps.size === 0 || plan.working}>
              {state.busy ? "Working…" : words(steps)}
            </button>
          </div>
        </form>
      ) : (
        <>
          <p class={trouble ? "trouble" : "quiet"}>{trouble || "Looking at what there is to do…"}</p>
          <div class="buttons">
            <button type="button" onClick={onClose}>
              Close
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

type Says = (plan: FinishPlan, steps: ReadonlySet<Step>) => { text: string; why: string };

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
const changed = (plan: FinishPlan): number => plan.commit.changed.length + plan.commit.new.length;

const STEPS: [Step, Says][] = [
  [
    "commit",
    (plan) => ({
      text: `Commit ${count(changed(plan), "file")} on ${plan.branch}`,
      why: plan.commit.refusal || (changed(plan) === 0 ? "Everything is committed." : ""),
    }),
  ],
  [
    "merge",
    ({ merge, branch }) => {
      if (!merge) return { text: "Merge", why: `There is no other branch to merge ${branch} into.` };
      const how = merge.kind === "fast-forward" ? " (fast-forward)" : "";
      const conflicts = merge.conflicts.length > 0 ? `It conflicts in ${merge.conflicts.join(", ")}.` : "";
      return { text: `Merge ${branch} into ${merge.into}${how}`, why: merge.refusal || conflicts };
    },
  ],
  [
    "push",
    ({ push, branch, merge }, steps) => ({
      text: `Push ${steps.has("merge") && merge ? merge.into : branch}${push ? ` to ${push.remote} (${push.url})` : ""}`,
      why: push ? "" : "The repository has no remote.",
    }),
  ],
  [
    "remove",
    ({ folder, live }) => ({
      text: `${live ? "Stop the agent and remove" : "Remove"} the worktree ${folder}`,
      why: "",
    }),
  ],
];

/** What most people want: everything that is safe to do here, and nothing that leaves this machine. */
function sensible(plan: FinishPlan): ReadonlySet<Step> {
  const can = (step: Step) => !STEPS.find(([name]) => name === step)?.[1](plan, new Set()).why;
  const merges = can("merge") && plan.merge?.kind !== "up-to-date";
  return new Set((["commit", "merge"] as Step[]).filter((step) => can(step) && (step === "commit" || merges)));
}

const WORDS: Record<Step, string> = { commit: "commit", merge: "merge", push: "push", remove: "remove" };

function words(steps: ReadonlySet<Step>): string {
  const text = STEPS.filter(([step]) => steps.has(step))
    .map(([step]) => WORDS[step])
    .join(", ");
  return text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}` : "Finish";
}

function summary(done: Finished): string {
  const parts = [
    done.commit ? `committed ${done.commit.slice(0, 9)}` : "",
    done.merge ? `merged as ${done.merge.slice(0, 9)}` : "",
    done.push ? `pushed ${done.push.branch} to ${done.push.remote}` : "",
    done.removed ? "worktree removed" : "",
    ...(done.notes ?? []),
  ].filter(Boolean);
  const text = parts.join(", ") || "nothing to do";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
