import type { Change, Draft, FieldName } from "../draft";
import type { Project } from "../wish";
import { Field } from "./Field";
import { type Option, Select } from "./Select";

interface Props {
  /** Repositories that sessions have cloned before. */
  projects: readonly Project[];
  draft: Draft;
  change: Change;
  profiles: readonly Option[];
  /** The one that is chosen, and what it is. */
  profile: string;
  amounts: string;
  troubles: Partial<Record<FieldName | "top", string>>;
}

/** Where a session in a pod works: in a clone of a repository, on a volume of its own; and what its pod has. */
export function NewSessionRepository({ projects, draft, change, profiles, profile, amounts, troubles }: Props) {
  return (
    <>
      <div class="field project">
        <Field
          name="repo"
          label="Repository"
          value={draft.repo}
          change={(repo) => change({ repo })}
          trouble={troubles.repo ?? ""}
          placeholder="https://git.example.org/team/app.git"
          hint={draft.repo.trim() ? "" : "It is cloned for the session. Without one, it begins in an empty folder"}
        />
        {projects.length > 0 ? (
          <fieldset class="chips" aria-label="Recent repositories">
            {projects.map(({ path, name }) => (
              <button
                type="button"
                key={path}
                title={path}
                aria-pressed={draft.repo.trim() === path}
                onClick={() => change({ repo: path })}
              >
                {name}
              </button>
            ))}
          </fieldset>
        ) : null}
      </div>
      <div class="two">
        <Field
          name="branch"
          label="Branch"
          value={draft.branch ?? ""}
          change={(branch) => change({ branch })}
          trouble={troubles.branch ?? ""}
          hint="The repository's own if empty"
        />
        <Select
          name="profile"
          label="Profile"
          options={profiles}
          chosen={profile}
          choose={(profile) => change({ profile })}
          trouble={troubles.profile ?? ""}
          hint={amounts}
        />
      </div>
    </>
  );
}
