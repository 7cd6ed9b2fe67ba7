import { databaseUrl } from "../kinds/database_url.ts";
import { path } from "../kinds/plain.ts";
import { type DefaultInputs, namesOf, type OptionTable } from "../kinds/option.ts";

/** Options of the storage for NAR files and metadata. */
export const STORAGE_OPTIONS = {
  "cache.storage-local": {
    kind: path,
    computed: stateDirectory,
    shown: "$STATE_DIRECTORY, else $XDG_STATE_HOME/larder, else ./larder-data",
    help: "Directory for NAR files",
    also: [{ key: "cache.storage.local" }, namesOf("cache.data-path")],
  },
  "cache.database-url": {
    kind: databaseUrl,
    computed: ({ textOf }) => ({
      kind: "sqlite" as const,
      path: `${textOf("cache.storage-local").replace(/\/+$/, "")}/db.sqlite`,
    }),
    shown: "sqlite: and db.sqlite in the directory of cache.storage-local",
    help: "Database for narinfos: sqlite: and a path",
  },
} as const satisfies OptionTable;

function stateDirectory({ variable }: DefaultInputs): string {
  // systemd separates several directories by colons; the first one is for a program's data.
  const fromSystemd = variable("STATE_DIRECTORY")?.split(":")[0];
  if (fromSystemd) return fromSystemd;
  const stateHome = variable("XDG_STATE_HOME");
  // The XDG specification ignores relative paths.
  return stateHome?.startsWith("/") ? `${stateHome.replace(/\/+$/, "")}/larder` : "./larder-data";
}
