import { SlidersHorizontal } from "lucide";
import { compact, grouping, record, showArchived } from "../rail";
import { Icon } from "./Icon";
import { Menu } from "./Menu";

const RECORDS = ["active", "suspended", "archived", "error"];

/** How the list is shown, and which records are in it. */
export function ViewMenu() {
  return (
    <Menu label="How to list" stays sign={<Icon of={SlidersHorizontal} />}>
      <fieldset class="choice">
        <legend>Sections</legend>
        {(["state", "project"] as const).map((by) => (
          <label key={by}>
            <input
              type="radio"
              name="grouping"
              checked={grouping.value === by}
              onChange={() => (grouping.value = by)}
            />
            by {by}
          </label>
        ))}
      </fieldset>
      <label class="setting">
        <input
          type="checkbox"
          checked={compact.value}
          onChange={(event) => (compact.value = event.currentTarget.checked)}
        />
        One line each
      </label>
      <label class="setting">
        <input
          type="checkbox"
          checked={showArchived.value}
          onChange={(event) => (showArchived.value = event.currentTarget.checked)}
        />
        Show archived
      </label>
      <label class="setting">
        Records
        <select
          aria-label="Records"
          title="Which records to list; current means active or suspended"
          value={record.value}
          onChange={(event) => (record.value = event.currentTarget.value)}
        >
          <option value="">current</option>
          {RECORDS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </Menu>
  );
}
