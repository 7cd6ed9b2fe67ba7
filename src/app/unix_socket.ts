import { Failure, reasonOf } from "../base/failure.ts";

/** Permissions of a Unix socket. */
export interface SocketAccess {
  readonly mode: number;
  /** A name of /etc/group, or a number; default: the process's own. */
  readonly group: string | undefined;
}

/** Names of groups and their numbers. */
export const GROUPS_FILE = "/etc/group";

/**
 * Listens on a Unix socket, and replaces one that a killed server left. Throws `AddrInUse` if a
 * server answers there, and a Failure for an unusable group.
 */
export async function listenOnSocket(
  path: string,
  access: SocketAccess,
): Promise<Deno.UnixListener> {
  const groupId = access.group === undefined ? undefined : groupIdOf(access.group);
  await removeStaleSocket(path);
  const listener = Deno.listen({ transport: "unix", path });
  try {
    if (groupId !== undefined) setGroup(groupId, path, access);
    Deno.chmodSync(path, access.mode);
    return listener;
  } catch (error) {
    listener.close();
    throw error;
  }
}

function setGroup(groupId: number, path: string, { group }: SocketAccess): void {
  try {
    Deno.chownSync(path, null, groupId);
  } catch (error) {
    const why = `${reasonOf(error)}; larder's user must be a member of that group`;
    throw new Failure("broken", `Cannot give the socket to group ${group}: ${why}`);
  }
}

/** Throws a Failure for an unknown group. */
function groupIdOf(group: string): number {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  const line = groupLines().find((one) => one.startsWith(`${group}:`));
  const id = line?.split(":")[2];
  if (id !== undefined) return Number(id);
  const advice = "create it, or give its number, with --server-socket-group";
  throw new Failure("broken", `Cannot find group ${group} in /etc/group: ${advice}`);
}

function groupLines(): readonly string[] {
  try {
    return Deno.readTextFileSync(GROUPS_FILE).split("\n");
  } catch (error) {
    throw new Failure("broken", `Cannot read /etc/group: ${reasonOf(error)}`);
  }
}

async function removeStaleSocket(path: string): Promise<void> {
  try {
    if (!Deno.lstatSync(path).isSocket) return;
    using _answered = await Deno.connect({ transport: "unix", path });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    if (!(error instanceof Deno.errors.ConnectionRefused)) throw error;
    return Deno.removeSync(path);
  }
  throw new Deno.errors.AddrInUse(path);
}
