import { runFetchThread } from "../../src/app/workers/fetch_worker.ts";
import { runNarinfoThread } from "../../src/app/workers/narinfo_worker.ts";
import { runVerifyThread } from "../../src/app/workers/verify_worker.ts";
import type { WorkerScope } from "../../src/base/worker_scope.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Net } from "../../src/runtime/net.ts";
import { type Thread, type Threads, WORKER_THREADS } from "../../src/runtime/threads.ts";

/** What the programs of threads are given. */
interface ThreadRuntime {
  readonly net: Net;
}

type Program = (scope: WorkerScope<unknown, unknown>, runtime: ThreadRuntime) => Disposable;

type FetchScope = Parameters<typeof runFetchThread>[0];
type NarinfoScope = Parameters<typeof runNarinfoThread>[0];
type VerifyScope = Parameters<typeof runVerifyThread>[0];

/** The programs of threads by the names of their modules. */
const PROGRAMS: Readonly<Record<string, Program>> = {
  "fetch_worker.ts": (scope, runtime) => runFetchThread(scope as FetchScope, runtime),
  "narinfo_worker.ts": (scope, runtime) => runNarinfoThread(scope as NarinfoScope, runtime),
  "verify_worker.ts": (scope) => runVerifyThread(scope as VerifyScope),
};

/**
 * Threads that are functions of this one, where their program can be: a Worker takes a fifth of a
 * second of a core to start. Messages take a turn each way, as between threads.
 */
export class PlayedThreads implements Threads {
  readonly #runtime: ThreadRuntime;

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime;
  }

  start(program: URL, permissions?: Parameters<Threads["start"]>[1]): Thread {
    const name = program.pathname.slice(program.pathname.lastIndexOf("/") + 1);
    const run = PROGRAMS[name];
    if (run === undefined) return WORKER_THREADS.start(program, permissions);
    let isOver = false;
    const deliver = (
      message: unknown,
      moved: ArrayBuffer[] | undefined,
      to: () => { onmessage: unknown },
    ) => {
      const data = structuredClone(message, { transfer: moved ?? [] });
      clock.soon(() => {
        if (!isOver) (to().onmessage as ((event: { data: unknown }) => void) | null)?.({ data });
      });
    };
    const scope: WorkerScope<unknown, unknown> = {
      onmessage: null,
      postMessage: (message, moved) => deliver(message, moved, () => thread),
    };
    const thread: Thread = {
      onmessage: null,
      onerror: null,
      postMessage: (message, moved) => deliver(message, moved, () => scope),
      terminate() {
        isOver = true;
        running[Symbol.dispose]();
      },
    };
    const running = run(scope, this.#runtime);
    return thread;
  }
}
