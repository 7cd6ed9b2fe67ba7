import { messageOf } from "../../base/failure.ts";
import type { PublicKey, SecretKey } from "../../nix/signature.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Threads } from "../../runtime/threads.ts";
import type { Logger } from "../../telemetry/logger.ts";
import {
  type CaCertificates,
  failedReading,
  type HttpUpstreamSettings,
} from "../../upstream/http/upstream_fetch.ts";
import type {
  NarinfoFetcher,
  NarinfoOrder,
  NarinfoWatch,
} from "../../upstream/http/narinfo_fetcher.ts";
import type { NarinfoReading } from "../../upstream/upstream.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromNarinfoWorker, NarinfoWorkerOrder, ToNarinfoWorker } from "./messages.ts";
import { Outbox } from "./outbox.ts";

export interface WorkerNarinfosDeps {
  readonly threads: Threads;
  readonly settings: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
  readonly trustedKeys: readonly PublicKey[];
  readonly requireSignature: boolean;
  readonly secretKey: SecretKey | undefined;
  readonly log: Logger;
}

/** Rights of the Worker: the network alone. It has the signing key and parses upstream texts. */
export const NETWORK_ALONE: Deno.PermissionOptionsObject = {
  net: "inherit",
  read: false,
  write: false,
  env: false,
  sys: false,
  run: false,
  ffi: false,
};

/**
 * Fetches crowds of narinfos in a Worker. While that is not up, the thread that answers does it
 * itself: a Worker that dies or hangs costs time, and never an answer.
 */
export class WorkerNarinfos implements Disposable {
  readonly #worker: JobWorker<ToNarinfoWorker, FromNarinfoWorker>;
  readonly #life: WorkerLife;
  readonly #outbox: Outbox<NarinfoWorkerOrder>;
  readonly #silence = new SilenceWatch(() => this.#life.check());

  constructor(deps: WorkerNarinfosDeps) {
    const { settings, caCertificates, trustedKeys, requireSignature, secretKey } = deps;
    this.#worker = new JobWorker<ToNarinfoWorker, FromNarinfoWorker>({
      threads: deps.threads,
      url: new URL("./narinfo_worker.ts", import.meta.url),
      start: {
        type: "start",
        upstreams: settings,
        trustedKeys: trustedKeys.map(({ text }) => text),
        secretKey: secretKey?.text,
        ...{ caCertificates, requireSignature },
      } satisfies ToNarinfoWorker,
      permissions: NETWORK_ALONE,
      died: (id, detail) => ({ id, type: "died", detail }),
    });
    this.#outbox = new Outbox((orders) => {
      // A late order must not start a Worker of its own.
      if (this.#life.isUp) this.#worker.send({ type: "orders", orders });
    });
    this.#life = new WorkerLife(this.#worker, (error) => {
      deps.log.event("narinfo-worker-lost", { error });
    });
  }

  /** Fetches from the upstream of that URL. `own` does so on this thread, for lone narinfos too. */
  over(upstream: string, own: NarinfoFetcher): NarinfoFetcher {
    // Of each upstream alone: one narinfo of several upstreams is no crowd.
    const crowd = new NarinfoCrowd();
    return {
      fetch: async (order, watch) => {
        const isTaken = await crowd.joined() && this.#life.takes();
        const reading = isTaken ? await this.#ask(upstream, order, watch) : undefined;
        return reading ?? await own.fetch(order, watch);
      },
    };
  }

  [Symbol.dispose](): void {
    this.#silence[Symbol.dispose]();
    this.#life[Symbol.dispose]();
    this.#worker[Symbol.dispose]();
  }

  /** `undefined` where the Worker ends before its answer. Rejects on a bug in it. */
  async #ask(
    upstream: string,
    order: NarinfoOrder,
    { signal, answered, busy }: NarinfoWatch,
  ): Promise<NarinfoReading | undefined> {
    if (signal.aborted) return failedReading(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<NarinfoReading | undefined>();
    const worker = this.#worker;
    let status: number | undefined;
    let isOver = false;
    const id = worker.open((message) => {
      this.#silence.received();
      switch (message.type) {
        case "busy":
          return busy();
        case "answered":
          return void (status = message.status);
        case "read":
          status = message.status;
          return resolve(message.reading);
        case "broken":
          return reject(new Error(message.error));
        case "died":
          return resolve(undefined);
      }
    });
    // Never removed: the signal is this request's alone, and removing costs more than a flag.
    signal.addEventListener("abort", () => {
      if (isOver) return;
      this.#outbox.add({ type: "cancel", id });
      resolve(failedReading(signal.reason));
    }, { once: true });
    this.#outbox.add({ type: "fetch", id, upstream, order });
    this.#silence.began();
    try {
      return await promise;
    } finally {
      isOver = true;
      this.#silence.ended();
      worker.forget(id);
      // Here, as the Worker's messages arrive outside of the request's span.
      if (status !== undefined) answered(status);
    }
  }
}

/** Narinfos in one turn of the event loop that make a crowd: this thread has enough to do. */
const NARINFOS_MIN = 2;

/** Time after a crowd in which the next narinfos belong to it, too. */
const CROWDED_MS = 20;

/**
 * Detects bursts of narinfo requests. A Worker takes those in a crowd, many in one message. A lone
 * one costs more in a Worker than here, and its client waits longer.
 */
class NarinfoCrowd {
  #count = 0;
  #turn: Promise<boolean> | undefined;
  #crowdedAtMs = -Infinity;

  /** Counts a narinfo. Resolves behind this turn, to true where there is a crowd. */
  joined(): Promise<boolean> {
    this.#count++;
    // Code that became ready in the same turn runs first.
    return this.#turn ??= Promise.resolve().then(() => this.#end());
  }

  #end(): boolean {
    const nowMs = clock.nowMs();
    if (this.#count >= NARINFOS_MIN) this.#crowdedAtMs = nowMs;
    this.#count = 0;
    this.#turn = undefined;
    return nowMs - this.#crowdedAtMs < CROWDED_MS;
  }
}

/** A Worker with jobs counts as silent after once or twice this time without a message. */
const SILENCE_MS = 500;

/** Notices that a Worker with jobs says nothing. One timer for all jobs: they are short. */
class SilenceWatch implements Disposable {
  readonly #onSilence: () => void;
  #jobs = 0;
  #hasBeenSilent = false;
  #timer: Timer | undefined;

  /** `onSilence`: called again and again while the silence lasts. */
  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  began(): void {
    this.#jobs++;
    this.#timer ??= clock.after(SILENCE_MS, () => this.#checkSilence());
  }

  ended(): void {
    this.#jobs--;
  }

  /** Call it when a message of the Worker came. */
  received(): void {
    this.#hasBeenSilent = false;
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #checkSilence(): void {
    this.#timer = undefined;
    if (this.#jobs === 0) return;
    if (this.#hasBeenSilent) this.#onSilence();
    this.#hasBeenSilent = true;
    this.#timer = clock.after(SILENCE_MS, () => this.#checkSilence());
  }
}

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
