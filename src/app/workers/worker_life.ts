import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { JobWorker } from "./job_worker.ts";
import type { FromNarinfoWorker, ToNarinfoWorker } from "./messages.ts";

/** The time for loading its modules, on a machine that is busy with other things. */
const START_MS = 10_000;

/** The time for the answer to a ping. A standstill of this thread counts little. */
const ANSWER_MS = 1_000;

/** Starts the Worker of narinfos when it pays, and gives it up when it hangs. */
export class WorkerLife implements Disposable {
  readonly #worker: JobWorker<ToNarinfoWorker, FromNarinfoWorker>;
  readonly #lost: (error: string) => void;
  readonly #own = new OwnNarinfos();
  #state: "off" | "starting" | "up" | "over" = "off";
  /** The job of all pings to one Worker. It gets the message of the Worker's death, too. */
  #pings = 0;
  #limit: Disposable | undefined;

  /** `lost`: called when the Worker ends by itself, or hangs. */
  constructor(
    worker: JobWorker<ToNarinfoWorker, FromNarinfoWorker>,
    lost: (error: string) => void,
  ) {
    this.#worker = worker;
    this.#lost = lost;
  }

  /** True if the Worker takes the next narinfo. Enough of those that it does not take start it. */
  takes(): boolean {
    if (this.#state === "off" && this.#own.another()) this.#start();
    return this.isUp;
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  /** Ends the Worker unless it answers. Its jobs learn that it died. */
  check(): void {
    if (this.isUp && this.#limit === undefined) this.#ping(ANSWER_MS, "it hangs");
  }

  [Symbol.dispose](): void {
    this.#state = "over";
    this.#endLimit();
  }

  #start(): void {
    this.#state = "starting";
    this.#pings = this.#worker.open((message) => {
      this.#endLimit();
      if (this.#state === "over") return;
      if (message.type === "died") return this.#died(message.detail);
      this.#state = "up";
    });
    try {
      this.#ping(START_MS, "it does not start");
    } catch (error) {
      // The system may refuse another thread.
      this.#worker.end(messageOf(error));
    }
  }

  #ping(limitMs: number, overdue: string): void {
    this.#limit = clock.countdown(limitMs, () => this.#worker.end(overdue));
    this.#worker.send({ type: "orders", orders: [{ type: "ping", id: this.#pings }] });
  }

  #died(detail: string): void {
    this.#state = "off";
    this.#own.lost();
    this.#lost(detail);
  }

  #endLimit(): void {
    this.#limit?.[Symbol.dispose]();
    this.#limit = undefined;
  }
}

/**
 * Narinfos in crowds without the Worker before it starts. A larder that serves hits alone never
 * pays the 10 MB of a Worker, and a client's first narinfos do not wait for its modules.
 */
const OWN_NARINFOS = 16;

/** Maximum crowd size; each lost Worker doubles the size up to it. */
const OWN_NARINFOS_MAX = 4_096;

/** The rule when the Worker of narinfos starts: the narinfos that this thread fetches itself. */
class OwnNarinfos {
  #count = OWN_NARINFOS;
  #left = OWN_NARINFOS;

  /** Counts a narinfo. True if a Worker should start. */
  another(): boolean {
    return --this.#left < 0;
  }

  /** A Worker was lost. */
  lost(): void {
    this.#count = Math.min(2 * this.#count, OWN_NARINFOS_MAX);
    this.#left = this.#count;
  }
}
