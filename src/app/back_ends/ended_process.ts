import { getPriority } from "node:os";
import { type MemberId, pidOn } from "../../base/member_id.ts";
import { hasSystemPermission } from "../../runtime/system_permission.ts";

/**
 * True for a member of this host whose process this one does not see. It has ended, or runs in a
 * container of the same host name: then it writes heartbeats. False without
 * `--allow-sys=getPriority`, and for a member of another host.
 */
export function hasEnded(member: MemberId): boolean {
  const pid = pidOn(Deno.hostname(), member);
  if (pid === undefined) return false;
  // A container that starts again gives its process the former one's id.
  if (pid === Deno.pid) return true;
  return hasSystemPermission("getPriority") && !isRunning(pid);
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
