import { type Finding, findingsOn } from "./finding.ts";
import type { ServerState } from "./server_check.ts";

export interface KeyFacts {
  /** The file, or the place that holds the key instead. */
  readonly path: string;
  /** The public half of the key in the file; `undefined` without a file. */
  readonly publicKey: string | undefined;
  /** Why the file is of no use. */
  readonly problem: string | undefined;
  /** True if a server has used the storage. */
  readonly isUsed: boolean;
  readonly server: ServerState;
}

/** Compares the signing key with the one that the running server shows. */
export function checkKey(facts: KeyFacts): readonly Finding[] {
  const { path, publicKey, problem, isUsed, server } = facts;
  const { ok, warning, failed } = findingsOn("signing key");
  if (problem !== undefined) {
    return [failed(problem, "restore the file from a backup, as clients trust that key")];
  }
  if (publicKey === undefined) {
    return isUsed
      ? [failed(`${path} is missing`, "restore it from a backup, as clients trust that key")]
      : [warning(`there is no ${path} yet`, "larder serve makes it at its first start")];
  }
  const signing = server.kind === "running" ? server.publicKey : undefined;
  if (signing !== undefined && signing !== publicKey) {
    const other = signing ?? "no key";
    return [failed(
      `the running server signs with ${other}, not with ${publicKey} (${path})`,
      "restart the server, or give the settings of that server to this command",
    )];
  }
  return [ok(publicKey)];
}
