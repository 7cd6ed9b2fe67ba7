import { larderLauncher, type Origin } from "../launchers.ts";
import type { Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";

/** Larders of one storage, and the servers that they share. */
export interface Group {
  readonly name: string;
  readonly count: number;
  /** `undefined`: one larder with SQLite, which needs no other server. */
  readonly shared?: { readonly databaseUrl: string; readonly redis: string };
}

/** Starts the larders one after another, each on a core of its own while there are some. */
export async function launchGroup(
  workplace: Workplace,
  origin: Origin,
  { name, count, shared }: Group,
): Promise<AsyncDisposable & { readonly larders: readonly Server[] }> {
  const folder = workplace.makeFolder(name.replaceAll(/\W+/g, "-"));
  const flags = shared === undefined ? {} : {
    "cache-database-url": shared.databaseUrl,
    "cache-redis-addrs": shared.redis,
    "cache-lock-redis-key-prefix": `${name}:`,
  };
  await using started = new AsyncDisposableStack();
  const larders: Server[] = [];
  for (let place = 0; place < count; place++) {
    const core = place % navigator.hardwareConcurrency;
    const launcher = larderLauncher(workplace, { ...origin, executable: undefined, flags, core });
    larders.push(started.use(await launcher.launch(folder)));
  }
  const held = started.move();
  return { larders, [Symbol.asyncDispose]: () => held.disposeAsync() };
}
