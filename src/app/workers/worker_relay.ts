import type { RelayClosed } from "../../http/relay/relay.ts";
import type { RelayLimits } from "../../http/relay/relayed.ts";
import type { FromRelayWorker, Place, ToRelayWorker } from "./messages.ts";

export interface WorkerRelayDeps {
  /** Where clients come in; port 0 is any. */
  readonly place: Place;
  /** Who listens within. */
  readonly inner: Place;
  readonly closed: (reason: RelayClosed) => void;
  /** Default: `RELAY_LIMITS_MS`. */
  readonly limits?: RelayLimits | undefined;
  readonly sweepEveryMs?: number | undefined;
}

/** A relay in a Worker: what it passes on is not on the main thread's way. */
export class WorkerRelay implements Disposable {
  /** Where clients come in. */
  readonly place: Place;
  readonly #worker: Worker;
  readonly #over = Promise.withResolvers<void>();
  #turned = Promise.withResolvers<void>();

  private constructor(worker: Worker, place: Place, closed: WorkerRelayDeps["closed"]) {
    this.#worker = worker;
    this.place = place;
    worker.onmessage = ({ data }: MessageEvent<FromRelayWorker>) => {
      if (data.type === "closed") closed(data.reason);
      if (data.type === "turned") this.#turned.resolve();
      if (data.type === "over") this.#over.resolve();
    };
  }

  /** Throws what Deno throws for the place. */
  static async listen(deps: WorkerRelayDeps): Promise<WorkerRelay> {
    const { place, inner, limits, sweepEveryMs } = deps;
    const worker = new Worker(new URL("./relay_worker.ts", import.meta.url), { type: "module" });
    const { promise, resolve } = Promise.withResolvers<FromRelayWorker>();
    worker.onmessage = ({ data }: MessageEvent<FromRelayWorker>) => resolve(data);
    send(worker, { type: "listen", place, inner, limits, sweepEveryMs });
    const answer = await promise;
    if (answer.type === "listening") return new WorkerRelay(worker, answer.place, deps.closed);
    worker.terminate();
    if (answer.type === "failed") throw listenError(answer.name, answer.message);
    throw new Error(`Cannot listen: the relay says "${answer.type}"`);
  }

  /** Resolves when every new client goes to `inner`, and none is on its way to the one before. */
  async turnTo(inner: Place): Promise<void> {
    this.#turned = Promise.withResolvers();
    send(this.#worker, { type: "turn", inner });
    await this.#turned.promise;
  }

  /** The handshake of the connection that came from this port is over. */
  secured(port: number): void {
    send(this.#worker, { type: "secured", port });
  }

  /** The connection that came from this port was closed. */
  givenUp(port: number): void {
    send(this.#worker, { type: "givenUp", port });
  }

  /** Takes no new client; resolves when those that are there have gone. */
  async over(): Promise<void> {
    send(this.#worker, { type: "stop" });
    await this.#over.promise;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }
}

function send(worker: Worker, message: ToRelayWorker): void {
  worker.postMessage(message);
}

/** Errors lose their class on the way from a Worker. */
function listenError(name: string, message: string): Error {
  const { AddrInUse, AddrNotAvailable } = Deno.errors;
  const known = [AddrInUse, AddrNotAvailable].find((one) => one.name === name);
  return new (known ?? Error)(message);
}
