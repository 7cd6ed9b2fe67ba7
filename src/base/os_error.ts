/** The end of a system error's message: its number, the call and the paths. */
const TAIL_REGEXP = / \(os error \d+\): [a-z]+(?: ('.*'))?$/s;
const REST_REGEXP = / \(os error \d+\)/g;

const FULL_CODES: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/**
 * A system error as a sentence: "No such file or directory: /a" for Deno's "No such file or
 * directory (os error 2): readfile '/a'".
 */
export function plainOsError(message: string): string {
  return message.replace(TAIL_REGEXP, (_, paths: string = "") => {
    const shown = paths.slice(1, -1).replace("' -> '", " to ");
    return shown === "" ? "" : `: ${shown}`;
  }).replaceAll(REST_REGEXP, "");
}

/** The same without the paths, for a message that names them itself. */
export function osReason(message: string): string {
  return message.replace(TAIL_REGEXP, "").replaceAll(REST_REGEXP, "");
}

/** True where the whole file system takes no change. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EROFS";
}

/** True where no further byte fits: the disk or the user's quota is full. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && FULL_CODES.has(String(error.code));
}
