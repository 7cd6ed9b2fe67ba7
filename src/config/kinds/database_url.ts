import { HIDDEN, type Kind } from "./option.ts";
import { hideCredentials } from "./upstream_url.ts";

/** The database for the metadata. */
export type DatabaseUrl =
  | { readonly kind: "sqlite"; readonly path: string }
  /** A URL with credentials. */
  | { readonly kind: "postgres"; readonly url: string };

// The scheme, then a path, or two slashes and an absolute path.
const SQLITE_REGEXP = /^sqlite:(?:\/\/(?=\/))?(?!\/\/|:memory:)([^?#\0]+)$/;

const POSTGRES_REGEXP = /^postgres(?:ql)?:\/\/[^\s#]+$/;

/** Meanings as in libpq. */
const SSL_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"];

/** `sqlite:` and the path of a file, or `postgres://` and so on. */
export const databaseUrl: Kind<DatabaseUrl> = {
  placeholder: "URL",

  parse(given) {
    const path = SQLITE_REGEXP.exec(given)?.[1];
    if (path !== undefined) return { kind: "sqlite", path };
    if (POSTGRES_REGEXP.test(given) && URL.canParse(given)) return postgresUrl(given);
    throw new Error(
      "sqlite: and the path of a file, such as sqlite:/var/lib/larder/db.sqlite, or " +
        "postgres://USER@HOST/NAME",
    );
  },

  print: (database) => database.kind === "sqlite" ? `sqlite:${database.path}` : database.url,

  // Another database's URL given by mistake may hold credentials. A path has none, at most an @.
  redact: (given) => given.startsWith("sqlite:") ? given : hideCredentials(given),
};

function postgresUrl(given: string): DatabaseUrl {
  if (given.includes(`//${HIDDEN}@`)) {
    throw new Error(`the user and password themselves where ${HIDDEN} stands`);
  }
  const { pathname, searchParams } = new URL(given);
  if (pathname.length < 2) throw new Error("a URL with the name of a database behind the host");
  const mode = searchParams.get("sslmode") ?? "prefer";
  if (!SSL_MODES.includes(mode)) {
    throw new Error(`a URL with an sslmode that is one of ${SSL_MODES.join(", ")}`);
  }
  if (mode === "verify-ca" && !searchParams.has("sslrootcert")) {
    throw new Error("a URL with sslrootcert beside sslmode=verify-ca");
  }
  return { kind: "postgres", url: given };
}
