/** The reason why `accept` failed; it decides how the server reacts. */
export type AcceptFailure = "listener closed" | "no file handles" | "client gone";

/** Linux and macOS use the same numbers. */
const NO_HANDLES_REGEXP = /\(os error (?:23|24)\)/;
const NO_HANDLES_CODES: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"]);

/**
 * Classifies an error of `accept` or `connect`. A client that resets its connection before that
 * makes `accept` fail too; only that one connection is lost.
 */
export function acceptFailureOf(error: unknown): AcceptFailure {
  if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
    return "listener closed";
  }
  return lacksHandles(error) ? "no file handles" : "client gone";
}

/** True when the process (EMFILE) or the machine (ENFILE) has no file handle left. */
export function lacksHandles(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return "code" in error && NO_HANDLES_CODES.has(error.code) ||
    NO_HANDLES_REGEXP.test(error.message);
}
