import { osReason, plainOsError } from "./os_error.ts";
import { withoutUrlSecrets } from "./url_secrets.ts";

/** HTTP status and log level of each kind of failure. */
const MEANING = {
  "bad-request": { status: 400, level: "debug" },
  "denied": { status: 403, level: "info" },
  /** The client was silent for too long. */
  "stalled": { status: 408, level: "debug" },
  "absent": { status: 404, level: "debug" },
  "upstream-down": { status: 404, level: "warn" },
  "corrupt": { status: 404, level: "error" },
  /** A condition of this machine or its storage, such as a full disk. */
  "unavailable": { status: 503, level: "error" },
  /** The database does not answer. The log has said so, once for all requests. */
  "away": { status: 503, level: "debug" },
  /** The same for a narinfo that is there. A client would remember a 404 for an hour. */
  "out-of-reach": { status: 503, level: "debug" },
  "overloaded": { status: 503, level: "warn" },
  /** Too many ask for expensive work. The client may ask again in a moment. */
  "busy": { status: 503, level: "info" },
  "broken": { status: 500, level: "error" },
} as const;

export type FailureKind = keyof typeof MEANING;
/** The value of a fact in a log line. */
export type Fact = string | number | boolean;
export type Facts = Readonly<Record<string, Fact>>;

/** What clients learn who lost the database: their next try may work. */
export const DATABASE_AWAY = "the database does not answer";

/** The same of the storage. */
export const STORAGE_AWAY = "the storage does not answer";

/** What they learn where the failure does not tell the part. */
export const CANNOT_NOW = "larder cannot do this at the moment: its log says why";

/** An expected failure. `message` and `facts` go to the log, never to a client. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;
  readonly facts: Facts;

  constructor(kind: FailureKind, message: string, facts: Facts = {}, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.facts = facts;
  }
}

/** The row of `MEANING` for a thrown value; "broken" unless it is a Failure. */
export function meaningOf(thrown: unknown): typeof MEANING[FailureKind] {
  return MEANING[thrown instanceof Failure ? thrown.kind : "broken"];
}

/** The message of a thrown value for logs, without the secrets of URLs. */
export function messageOf(thrown: unknown): string {
  return withoutUrlSecrets(plainOsError(textOf(thrown)));
}

/** The same without paths, for a sentence that names the file or address itself. */
export function reasonOf(thrown: unknown): string {
  return withoutUrlSecrets(osReason(textOf(thrown)));
}

function textOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  // Deno's `fetch` gives the reason in its message, Deno 2.9.6 in the cause alone.
  const { cause } = thrown;
  return thrown.message === "fetch failed" && cause instanceof Error
    ? cause.message
    : thrown.message;
}
