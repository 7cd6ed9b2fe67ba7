import { getPriority } from "node:os";
import { type MemberId, pidOn } from "../base/member_id.ts";

/**
 * True where this machine can tell that a member's process has ended. False without
 * `--allow-sys=getPriority`, and for a member of another host: its heartbeat decides.
 */
export function hasEnded(member: MemberId): boolean {
  const pid = pidOn(Deno.hostname(), member);
  if (pid === undefined) return false;
  // A container that starts again gives its process the former one's id.
  if (pid === Deno.pid) return true;
  return mayAsk() && !isRunning(pid);
}

/** False if the system has no such process. Any other error counts as running. */
function isRunning(pid: number): boolean {
  try {
    getPriority(pid);
    return true;
  } catch (error) {
    const { info } = error as { readonly info?: { readonly code?: string } };
    return info?.code !== "ESRCH";
  }
}

/** Without permission Deno would prompt the user. */
function mayAsk(): boolean {
  const descriptor = {
    name: "sys",
    kind: "getPriority",
  } as unknown as Deno.SysPermissionDescriptor;
  return Deno.permissions.querySync(descriptor).state === "granted";
}
