import type { DatabaseState } from "../../app/doctor/read_database.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** The finding on the database. */
export function checkDatabase(path: string, state: DatabaseState): readonly Finding[] {
  const { ok, warning, failed, notChecked } = findingsOn("database");
  switch (state.kind) {
    case "healthy": {
      const { keptFiles, keptBytes } = state.health.stock;
      const files = `${counted(keptFiles, "NAR file")} (${formatBytes(keptBytes)})`;
      const { bytes } = state;
      const checked = bytes === undefined ? "its sums are" : "its pages and sums are";
      const size = bytes === undefined ? "" : `${formatBytes(bytes)}, `;
      return [ok(`${size}${checked} right: ${files}`)];
    }
    case "damaged": {
      const [first, ...others] = state.health.damage;
      if (first === undefined) {
        return [failed("its sums are not those of its rows", "larder fsck --repair")];
      }
      const more = others.length > 0 ? `, and ${others.length} more` : "";
      return [failed(`${path}: ${first}${more}`, "stop larder, and restore a backup")];
    }
    case "missing":
      return [warning(`there is no ${path} yet`, "larder serve makes it at its first start")];
    case "foreign": {
      const advice = "give larder one of its own with --cache-database-url";
      return [failed(`${path} is a database of another program`, advice)];
    }
    case "older": {
      const fact = `schema version ${state.version}, this larder has ${state.known}`;
      return [warning(fact, "the next start of this larder migrates it, and keeps a backup")];
    }
    case "newer": {
      const fact = `schema version ${state.version}, this larder knows ${state.known} at most`;
      return [failed(fact, "start the newer larder, or restore the backup of the migration")];
    }
    case "unreadable":
      return [failed(
        `${path}: ${state.reason}`,
        "run this as the user of larder; if it is damaged, stop larder and restore a backup",
      )];
    case "unknown":
      return [notChecked(state.reason, "start larder and run this again, or run larder fsck")];
  }
}
