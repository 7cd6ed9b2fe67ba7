import type { FetchFailure } from "../fetch/nar_fetcher.ts";

/** So many requests in a row that add no byte, and fail loudly, and a source is done. */
const LOUD_MAX = 3;

/** So many requests that bring the file nowhere, to all sources together, end its transfer. */
const FRUITLESS_MAX = 11;

/** What fails before the first byte counts as up to so many of them. */
const OPENING_MAX = 6;

/** With less than this a file goes nowhere: a byte at a time would take for ever. */
const PROGRESS_BYTES_MIN = 64 * 1024;

/** A transfer that fails loudly is cut within this, and within the idle timeout. */
const LOUD_FOR_MS = 4_000;

/** Pauses before the second and the third round through all sources, as parts of that time. */
const LOUD_PAUSES = [0.1, 0.5];

/** While a silent source is waited for, the sources are asked again after this. */
const SILENT_PAUSE_MS = 2_000;

/** A try at a source that did not bring the rest of the file. */
export interface FailedTry {
  /** "useless": the source does not have the right file. */
  readonly how: "loud" | "silent" | "useless";
  /** Bytes that it added to the file. */
  readonly addedBytes: number;
  /** Requests that the source got in this try. */
  readonly requests: number;
  /** When it was over. */
  readonly atMs: number;
}

/** How a failure sounds. `undefined`: it is our own, and says nothing of the source. */
export function soundOf(reason: FetchFailure): FailedTry["how"] | undefined {
  return SOUNDS[reason];
}

const SOUNDS = {
  timeout: "silent",
  stalled: "silent",
  unreachable: "loud",
  status: "loud",
  upstream: "loud",
  size: "useless",
  differs: "useless",
  room: undefined,
  disk: undefined,
  outrun: undefined,
  cancelled: undefined,
} as const satisfies Readonly<Record<FetchFailure, FailedTry["how"] | undefined>>;

interface SourceRecord {
  isUseless: boolean;
  /** True when its last try ended in silence. */
  isSilent: boolean;
  /** Requests in a row that failed loudly and added no byte. */
  loud: number;
}

/**
 * The rule by which the transfer of one NAR file is given up: which of its sources is worth another
 * try, and when. It has no clock and asks nobody.
 */
export class SourceFailures {
  readonly #idleTimeoutMs: number;
  readonly #records = new Map<string, SourceRecord>();
  #hasBegun = false;
  #fruitless = 0;
  #round = 0;
  #progressAtMs: number;
  /** True when a source stalled after a few bytes, and nothing has brought the file on since. */
  #hasStalled = false;
  #loudSinceMs = Infinity;

  /**
   * A silent source is waited for up to `idleTimeoutMs` after the last progress. The first stall
   * after a few bytes counts as progress, so that an only source is asked for the rest.
   */
  constructor(idleTimeoutMs: number, startedAtMs: number) {
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#progressAtMs = startedAtMs;
  }

  /** Somebody reads the file. Before, a single round is made: a client has other caches to ask. */
  begin(): void {
    this.#hasBegun = true;
  }

  /** What came is wrong, and nobody has read any of it. */
  startOver(wrong: string): void {
    this.#hasBegun = false;
    this.refuse(wrong);
  }

  /** A source that is never asked again. */
  refuse(source: string): void {
    this.#recordOf(source).isUseless = true;
  }

  /** False for a source that is done. */
  mayAsk(source: string): boolean {
    const { isUseless = false, loud = 0 } = this.#records.get(source) ?? {};
    if (this.#hasBegun && this.#fruitless >= FRUITLESS_MAX) return false;
    return !isUseless && loud < LOUD_MAX;
  }

  /**
   * Notes a try. True when the same source is to be asked again at once: it added to the file. A
   * silent one is not, since each of its stalls costs the client an idle timeout.
   */
  failed(source: string, { how, addedBytes, requests, atMs }: FailedTry): boolean {
    const record = this.#recordOf(source);
    record.isSilent = how === "silent";
    record.isUseless ||= how === "useless";
    if (addedBytes > 0) record.loud = 0;
    else if (how === "loud") record.loud += requests;
    if (addedBytes >= PROGRESS_BYTES_MIN) this.#progressed(atMs);
    else if (how === "loud") {
      const fruitless = this.#fruitless + requests;
      this.#fruitless = this.#hasBegun ? fruitless : Math.min(OPENING_MAX, fruitless);
      this.#loudSinceMs = Math.min(this.#loudSinceMs, atMs);
    } else if (how === "silent" && addedBytes > 0) this.#stalled(atMs);
    if (addedBytes > 0) this.#hasBegun = true;
    return addedBytes > 0 && how !== "silent" && this.mayAsk(source);
  }

  /** After a round through all sources: the pause before the next. `undefined`: give up. */
  pauseMs(nowMs: number): number | undefined {
    if (!this.#hasBegun) return undefined;
    const left = [...this.#records].filter(([source]) => this.mayAsk(source));
    if (left.length === 0) return undefined;
    const loudForMs = Math.min(LOUD_FOR_MS, this.#idleTimeoutMs);
    const part = LOUD_PAUSES[this.#round++];
    const loudPauseMs = part === undefined ? SILENT_PAUSE_MS : part * loudForMs;
    const isSilent = left.some(([, record]) => record.isSilent);
    const untilMs = isSilent
      ? this.#progressAtMs + this.#idleTimeoutMs
      : this.#loudSinceMs + loudForMs;
    return nowMs + loudPauseMs <= untilMs ? loudPauseMs : undefined;
  }

  #recordOf(source: string): SourceRecord {
    const record = this.#records.get(source) ?? { isUseless: false, isSilent: false, loud: 0 };
    this.#records.set(source, record);
    return record;
  }

  #stalled(atMs: number): void {
    if (!this.#hasStalled) this.#progressAtMs = atMs;
    this.#hasStalled = true;
  }

  #progressed(atMs: number): void {
    // What failed before the first byte counts on: the client waited for that, too.
    if (this.#hasBegun) this.#fruitless = 0;
    this.#progressAtMs = atMs;
    this.#hasStalled = false;
    this.#loudSinceMs = Infinity;
    this.#round = 0;
  }
}
