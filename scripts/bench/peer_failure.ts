import type { Bench } from "./figure.ts";
import { type Launcher, PEER, type Server } from "./server.ts";

/** A result, and whether another cache had to be left out of it. */
export interface Survived<Value> {
  readonly value: Value;
  readonly isPeerBroken: boolean;
}

/**
 * Does the work. If that fails beside the cache that BENCH_PEER names, it prints the error. Then it
 * does the work without that cache: a wrong answer of another cache must not end the bench.
 */
export async function survivePeer<Value, Part extends Pick<Bench, "servers" | "launchers">>(
  bench: Part,
  work: (bench: Part) => Promise<Value>,
): Promise<Survived<Value>> {
  const isOther = ({ name }: { readonly name: string }) => name !== PEER;
  const hasPeer = ![...bench.servers, ...bench.launchers].every(isOther);
  try {
    return { value: await work(bench), isPeerBroken: false };
  } catch (error) {
    if (!hasPeer) throw error;
    tellPeerFailure(error);
  }
  const [servers, launchers] = [bench.servers.filter(isOther), bench.launchers.filter(isOther)];
  return { value: await work({ ...bench, servers, launchers }), isPeerBroken: true };
}

/** Starts a server; `undefined` for another cache that cannot start. */
export async function launchUnlessPeerFails(
  launcher: Launcher,
  folder: string,
): Promise<Server | undefined> {
  try {
    return await launcher.launch(folder);
  } catch (error) {
    if (launcher.name !== PEER) throw error;
    return tellPeerFailure(error);
  }
}

/** A failure of another cache is a result of its own. */
export function tellPeerFailure(error: unknown): undefined {
  console.error(`${PEER}: ${error}`);
}
