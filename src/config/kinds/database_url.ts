import type { Kind } from "./option.ts";
import { hideCredentials } from "./upstream_url.ts";

/** Which database keeps the metadata. */
export type DatabaseUrl = { readonly kind: "sqlite"; readonly path: string };

// After the scheme either a path, or the two slashes of a URL and an absolute path.
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

  // The URL of another database may be given by mistake. A path has no credentials, only an @.
  redact: (given) => given.startsWith("sqlite:") ? given : hideCredentials(given),
};
