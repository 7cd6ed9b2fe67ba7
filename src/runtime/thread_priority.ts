import { setPriority } from "node:os";
import { hasSystemPermission } from "./system_permission.ts";

const LOWEST = 19;

/**
 * Lets all other threads go before this one, for good. Nothing changes without the permission, and
 * where the system refuses it: the thread still waits for its turns.
 */
export function lowerThreadPriority(): void {
  // Elsewhere a priority is that of the whole process.
  if (Deno.build.os !== "linux" || !hasSystemPermission("setPriority")) return;
  try {
    setPriority(0, LOWEST);
  } catch {
    // A filter of system calls.
  }
}
