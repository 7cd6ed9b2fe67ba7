/** True with `--allow-sys` for `kind`. Without it Deno would prompt the user. */
export function hasSystemPermission(kind: "getPriority" | "setPriority" | "statfs"): boolean {
  // The types of Deno lack these.
  const descriptor = { name: "sys", kind } as unknown as Deno.SysPermissionDescriptor;
  return Deno.permissions.querySync(descriptor).state === "granted";
}
