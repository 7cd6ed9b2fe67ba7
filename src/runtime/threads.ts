/** A thread that works beside the one that answers. */
export interface Thread {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  /** Called when its program failed. Without `preventDefault`, the whole process ends. */
  onerror: ((event: { readonly message: string; preventDefault(): void }) => void) | null;
  /** `moved`: buffers that only the receiver has then. */
  postMessage(message: unknown, moved?: ArrayBuffer[]): void;
  terminate(): void;
}

/** Starts threads. Messages are copied on their way, but for moved buffers. */
export interface Threads {
  /** `program`: the module that the thread runs. `permissions`: fewer than this thread's. */
  start(program: URL, permissions?: Deno.PermissionOptionsObject | "inherit"): Thread;
}

/** Workers of Deno. */
export const WORKER_THREADS: Threads = {
  start(program, permissions = "inherit") {
    return new Worker(program, { type: "module", deno: { permissions } }) as Thread;
  },
};
