import { dice } from "../runtime/current.ts";

/** Identifies one process among all that share the storage: `<host>.<process id>.<UUID>`. */
export type MemberId = string;

/** Owns the pending objects that a member has taken from a dead one. */
export const NOBODY: MemberId = "";

/** Form of a member's id. Ids of earlier releases are a UUID alone. */
const MEMBER_REGEXP = /^(?:(?<host>.+)\.(?<pid>\d+)\.)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** An id that no process had before. It may name a file. */
export function newMemberId(host: string, pid: number): MemberId {
  return `${fileNameOf(host)}.${pid}.${dice.uuid()}`;
}

export function isMemberId(text: string): boolean {
  return MEMBER_REGEXP.test(text);
}

/** The process id of a member on `host`; `undefined` for a member of another host. */
export function pidOn(host: string, member: MemberId): number | undefined {
  const { host: named, pid } = MEMBER_REGEXP.exec(member)?.groups ?? {};
  return named === fileNameOf(host) ? Number(pid) : undefined;
}

/** False for a member of another host. One of an earlier release does not name its host. */
export function isOfHost(host: string, member: MemberId): boolean {
  const named = MEMBER_REGEXP.exec(member)?.groups?.["host"];
  return named === undefined || named === fileNameOf(host);
}

/** False for members of two hosts. One that does not name its host may be of any. */
export function areOfOneHost(one: MemberId, other: MemberId): boolean {
  const [first, second] = [one, other].map((member) =>
    MEMBER_REGEXP.exec(member)?.groups?.["host"]
  );
  return first === undefined || second === undefined || first === second;
}

function fileNameOf(host: string): string {
  return host.replaceAll(/[^\w.-]/g, "-");
}
