export interface WorkerScope<In, Out> {
  onmessage: ((event: MessageEvent<In>) => void) | null;
  /** `moved`: buffers that only the receiver has then. */
  postMessage(message: Out, moved?: ArrayBuffer[]): void;
}

/**
 * The global scope of a Worker, typed by its messages in and out. The library that declares it
 * cannot be loaded beside the main thread's.
 */
export function workerScope<In, Out>(): WorkerScope<In, Out> {
  return globalThis as unknown as WorkerScope<In, Out>;
}
