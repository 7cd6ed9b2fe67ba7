import type { FetchFailure } from "../fetch/nar_fetcher.ts";

/** A source is done after so many loud failures in a row that add no byte. */
const LOUD_MAX = 3;

/** A transfer ends after so many requests in a row without progress, over all sources. */
const FRUITLESS_MAX = 11;

/** Failures before the first byte count as at most so many of them. */
const OPENING_MAX = 6;

/** Fewer bytes are no progress: one byte at a time would take for ever. */
const PROGRESS_BYTES_MIN = 64 * 1024;

/** The longest time for loud failures; the idle timeout limits it too. */
const LOUD_FOR_MS = 4_000;

/** Pauses before the second and the third round through all sources, as parts of that time. */
const LOUD_PAUSES = [0.1, 0.5];

/** The pause between rounds while a silent source may still answer. */
const SILENT_PAUSE_MS = 2_000;

/** An attempt at a source that did not bring the rest of the file. */
export interface FailedTry {
  /** "loud": an error; "silent": a timeout; "useless": the source does not have the right file. */
  readonly how: "loud" | "silent" | "useless";
  /** Bytes that the source added to the file. */
  readonly addedBytes: number;
  /** Requests to the source in this attempt. */
  readonly requests: number;
  /** The end of the attempt. */
  readonly atMs: number;
}

/** The class of a failure; `undefined` for our own, which says nothing about the source. */
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
  /** True when the source's last attempt ended in silence. */
  isSilent: boolean;
  /** Requests in a row that failed loudly and added no byte. */
  loud: number;
}

/**
 * The rule that gives up the transfer of one NAR file: which source to retry, and when. Pure: it
 * has no clock and sends no requests.
 */
export class SourceFailures {
  readonly #idleTimeoutMs: number;
  readonly #records = new Map<string, SourceRecord>();
  #hasBegun = false;
  #fruitless = 0;
  #round = 0;
  #progressAtMs: number;
  /** True when a source stalled after a few bytes, and no source has made progress since. */
  #hasStalled = false;
  #loudSinceMs = Infinity;

  /**
   * A silent source may take `idleTimeoutMs` after the last progress. The first stall after a few
   * bytes counts as progress, so that an only source gets another request.
   */
  constructor(idleTimeoutMs: number, startedAtMs: number) {
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#progressAtMs = startedAtMs;
  }

  /** A client reads the file. Until then there is one round: the client has other caches. */
  begin(): void {
    this.#hasBegun = true;
  }

  /** The bytes are wrong, and no client has read any of them. */
  startOver(wrong: string): void {
    this.#hasBegun = false;
    this.refuse(wrong);
  }

  /** Excludes a source for good. */
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
   * Notes a failed attempt. True when the same source comes next: it added to the file. A silent
   * source does not, since each stall costs the client an idle timeout.
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

  /** The pause before the next round through all sources. `undefined`: give up. */
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
    // Failures before the first byte still count: the client waited for them, too.
    if (this.#hasBegun) this.#fruitless = 0;
    this.#progressAtMs = atMs;
    this.#hasStalled = false;
    this.#loudSinceMs = Infinity;
    this.#round = 0;
  }
}
