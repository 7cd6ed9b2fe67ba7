import type { Kind } from "../option.ts";

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
};
