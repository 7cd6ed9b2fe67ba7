import type { Facts } from "../../base/failure.ts";

/** Enough of a hash to tell NAR files apart. */
const HASH_CHARS = 8;

/** The hash of a store path, or of a NAR. */
const HASH_REGEXP = /\b[0-9a-z]{32,}\b/g;

/**
 * Subject of a log line: a package such as `firefox-130.0`, else the NAR file, the upstream or
 * the request's path, else larder itself.
 */
export function subjectOf({ name, nar, upstream, path, route }: Facts): string {
  if (name !== undefined) return String(name);
  if (nar !== undefined) return shortNar(String(nar));
  if (upstream !== undefined) return hostOf(String(upstream));
  if (path !== undefined && route !== undefined) return shortHashes(String(path));
  return "larder";
}

/** `/pin/0a1b2c3d….narinfo`: whole hashes are wider than the column of names. */
function shortHashes(path: string): string {
  return path.replaceAll(HASH_REGEXP, (text) => `${text.slice(0, HASH_CHARS)}…`);
}

/** `0a1b2c3d….nar.xz` for the name of a NAR file. */
function shortNar(nar: string): string {
  const dot = nar.indexOf(".");
  const end = dot < 0 ? nar.length : dot;
  return end <= HASH_CHARS ? nar : `${nar.slice(0, HASH_CHARS)}…${nar.slice(end)}`;
}

function hostOf(url: string): string {
  return URL.parse(url)?.host || url;
}
