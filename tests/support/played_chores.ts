import { SizeLimit, SpaceBudget } from "../../src/space/size_limit.ts";
import { type ChoresDeps, startChores } from "../../src/app/chores.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { SystemClock, type Timer } from "../../src/runtime/clock.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { recover } from "../../src/space/recover.ts";
import { Sweeper } from "../../src/space/sweeper.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { MemoryNarStore } from "./memory_nar_store.ts";
import { NO_SPOOL } from "./no_spool.ts";

/** A member of a storage, and the clock of all heartbeats. */
export interface PlayedMember {
  readonly id: string;
  readonly metadata: MetadataStore;
  readonly limitBytes: number;
  elapse(ms: number): void;
}

interface Interval {
  readonly everyMs: number;
  readonly run: () => unknown;
}

const nothing = async () => undefined;

/** The chores of a living member, whose intervals only go on when a test says so. */
export class PlayedChores implements AsyncDisposable {
  readonly #intervals: Interval[] = [];
  readonly #elapse: PlayedMember["elapse"];
  readonly #chores: AsyncDisposable;
  #nowMs = 0;

  /** Looks at the disk so far. */
  readonly counted: { readonly looks: number };

  private constructor(
    deps: ChoresDeps,
    elapse: PlayedMember["elapse"],
    counted: { readonly looks: number },
  ) {
    this.#elapse = elapse;
    this.counted = counted;
    using _clock = playRuntime({ clock: new IntervalClock(this.#intervals) });
    this.#chores = startChores(deps);
  }

  static async start({ id, metadata, limitBytes, elapse }: PlayedMember): Promise<PlayedChores> {
    const { promise: sampled, resolve } = Promise.withResolvers<void>();
    const log = createLogger("debug", { write: () => resolve() });
    const nars = new MemoryNarStore();
    const beat = () => metadata.beat(id, { reservedBytes: 0, limitBytes });
    const counted = { looks: 0 };
    // It publishes nothing.
    const settling = { metadata, nars, isPublishing: () => false };
    const chores = new PlayedChores(
      {
        stores: {
          settle: () => recover({ ...settling, spool: NO_SPOOL, member: id, log }),
          changes: { subscribe: () => ({ [Symbol.asyncDispose]: nothing }) },
          ...{ metadata, nowMs: () => 0, probe: nothing },
          spool: { restore() {}, takeReceived: () => [] },
        },
        app: {
          space: {
            ...{
              beat: async () => void await beat(),
              refresh: nothing,
              lookAtDisk: async () => void (counted.looks++),
              tidy() {},
            },
            sweeper: new Sweeper({ metadata, nars, owner: id, log }),
            budget: new SpaceBudget(SizeLimit.of(limitBytes)),
          },
          ...{ reads: { names: () => new Set() }, touches: { flush: nothing } },
          disk: {
            get freeBytes() {
              return undefined;
            },
            set freeBytes(_) {
              resolve();
            },
          },
          ...{ expireUploads: nothing, resume: nothing, reportToMembers: nothing, probe: nothing },
        },
        ...{ schedule: undefined, retentionMs: 0, storage: ".", metrics: new Metrics(), log },
      },
      elapse,
      counted,
    );
    await sampled;
    return chores;
  }

  /** Plays the work of the next `ms` milliseconds, each at its time. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const nextMs = Math.min(...this.#intervals.map((one) => this.#nextOf(one)));
      if (nextMs > untilMs) break;
      const due = this.#intervals.filter((one) => this.#nextOf(one) === nextMs);
      this.#goTo(nextMs);
      for (const { run } of due) await run();
    }
    this.#goTo(untilMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chores[Symbol.asyncDispose]();
  }

  /** The next time after now. */
  #nextOf({ everyMs }: Interval): number {
    return (Math.floor(this.#nowMs / everyMs) + 1) * everyMs;
  }

  #goTo(atMs: number): void {
    this.#elapse(atMs - this.#nowMs);
    this.#nowMs = atMs;
  }
}

/** A clock whose intervals a test runs itself. */
class IntervalClock extends SystemClock {
  readonly #intervals: Interval[];

  constructor(intervals: Interval[]) {
    super();
    this.#intervals = intervals;
  }

  override every(everyMs: number, run: () => unknown): Timer {
    this.#intervals.push({ everyMs, run });
    return { cancel() {}, [Symbol.dispose]() {} };
  }
}
