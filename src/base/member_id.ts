import { dice } from "../runtime/current.ts";

/** Identifies one process among all that share the storage: `<host>.<process id>.<UUID>`. */
export type MemberId = string;

/** Owns the pending objects that a member has taken from a dead one. */
export const NOBODY: MemberId = "";

/** Form of a member's id. */
const MEMBER_REGEXP = /^(?<host>.+)\.(?<pid>\d+)\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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

/** False for a member of another host. */
export function isOfHost(host: string, member: MemberId): boolean {
  return hostIn(member) === fileNameOf(host);
}

/** False for members of two hosts. */
export function areOfOneHost(one: MemberId, other: MemberId): boolean {
  return hostIn(one) === hostIn(other);
}

function hostIn(member: MemberId): string | undefined {
  return MEMBER_REGEXP.exec(member)?.groups?.["host"];
}

function fileNameOf(host: string): string {
  return host.replaceAll(/[^\w.-]/g, "-");
}
