import type { Net } from "./net.ts";
import { SYSTEM_NET } from "./system_net.ts";
import { type Threads, WORKER_THREADS } from "./threads.ts";

/** What one larder does beyond its own memory, besides its rows, its locks and its sockets. */
export interface Runtime {
  readonly net: Net;
  readonly threads: Threads;
}

/** The network and the threads of this machine. */
export const SYSTEM_RUNTIME: Runtime = { net: SYSTEM_NET, threads: WORKER_THREADS };
