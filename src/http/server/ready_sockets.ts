import { Notifier } from "../../base/notifier.ts";
import type { Socket } from "./request_reader.ts";

/** Accepted connections, each given out once it is ready: a slow one delays no other. */
export class ReadySockets {
  readonly #acceptOne: () => Promise<void>;
  readonly #ready: Socket[] = [];
  readonly #changed = new Notifier();
  #accepting: Promise<void> | undefined;

  /** `acceptOne` accepts a connection, which is added as soon as it is ready. */
  constructor(acceptOne: () => Promise<void>) {
    this.#acceptOne = acceptOne;
  }

  add(socket: Socket): void {
    this.#ready.push(socket);
    this.#changed.notify();
  }

  /** Accepts connections until one is ready. Throws the error of `acceptOne`. */
  async next(): Promise<Socket> {
    for (;;) {
      const socket = this.#ready.shift();
      if (socket !== undefined) return socket;
      const changed = this.#changed.notified();
      this.#accepting ??= this.#acceptOne().finally(() => this.#accepting = undefined);
      await Promise.race([changed, this.#accepting]);
    }
  }
}
