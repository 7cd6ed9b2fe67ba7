import type { Kind } from "./option.ts";
import { hideCredentials } from "./upstream_url.ts";

/** The database for the metadata. */
export type DatabaseUrl = { readonly kind: "sqlite"; readonly path: string };

// The scheme, then a path, or two slashes and an absolute path.
const SQLITE_REGEXP = /^sqlite:(?:\/\/(?=\/))?(?!\/\/|:memory:)([^?#\0]+)$/;

/** `sqlite:` and the path of a file. */
export const databaseUrl: Kind<DatabaseUrl> = {
  placeholder: "URL",

  parse(given) {
    const path = SQLITE_REGEXP.exec(given)?.[1];
    if (path === undefined) {
      throw new Error("sqlite: and the path of a file, such as sqlite:/var/lib/larder/db.sqlite");
    }
    return { kind: "sqlite", path };
  },

  print: (database) => `sqlite:${database.path}`,

  // Another database's URL given by mistake may hold credentials. A path has none, at most an @.
  redact: (given) => given.startsWith("sqlite:") ? given : hideCredentials(given),
};
