import type { FetchFailure } from "../fetch/nar_fetcher.ts";

/** Errors in a row, without a new byte, after which a source is done. */
const ERRORS_MAX = 3;

/** Small additions in a row after which the others get the rest first. */
const SMALL_ADDITIONS_MAX = 3;

/** Requests in a row without progress, over all sources, after which a transfer ends. */
const REQUESTS_WITHOUT_PROGRESS_MAX = 11;

/** Failures before the first byte count as at most this many of them. */
const OPENING_MAX = 6;

/** Fewer bytes are no progress: one byte at a time would take for ever. */
const PROGRESS_BYTES_MIN = 64 * 1024;

/** The longest time for retries after errors; the idle timeout limits it too. */
const RETRY_ERRORS_FOR_MS = 4_000;

/** Pauses before the second and the third round through all sources, as parts of that time. */
const ERROR_PAUSES = [0.1, 0.5];

/** The pause between rounds while a source that timed out may still answer. */
const TIMEOUT_PAUSE_MS = 2_000;

/** "error": no connection, an error response or a break; "wrong file": it has another file. */
export type FailureClass = "error" | "timeout" | "wrong file";

/** An attempt at a source that did not bring the rest of the file. */
export interface FailedTry {
  readonly failureClass: FailureClass;
  /** Bytes that the source added to the file. */
  readonly addedBytes: number;
  /** Requests to the source in this attempt. */
  readonly requests: number;
  /** The end of the attempt. */
  readonly atMs: number;
}

/** The class of a failure; `undefined` for our own, which says nothing about the source. */
export function failureClassOf(reason: FetchFailure): FailureClass | undefined {
  return FAILURE_CLASSES[reason];
}

const FAILURE_CLASSES = {
  timeout: "timeout",
  stalled: "timeout",
  unreachable: "error",
  status: "error",
  upstream: "error",
  size: "wrong file",
  differs: "wrong file",
  room: undefined,
  disk: undefined,
  outrun: undefined,
  cancelled: undefined,
} as const satisfies Readonly<Record<FetchFailure, FailureClass | undefined>>;

interface SourceRecord {
  hasWrongFile: boolean;
  /** True when the source's last attempt ended in a timeout. */
  hasTimedOut: boolean;
  /** Requests in a row that failed with an error and added no byte. */
  errors: number;
  /** Requests in a row that added bytes, but no progress. */
  smallAdditions: number;
}

/**
 * The rule that gives up the transfer of one NAR file: which source to retry, and when. Pure: it
 * has no clock and sends no requests.
 */
export class SourceFailures {
  readonly #idleTimeoutMs: number;
  readonly #records = new Map<string, SourceRecord>();
  #hasBegun = false;
  #withoutProgress = 0;
  #round = 0;
  #progressAtMs: number;
  /** True when a source stalled after a few bytes, and no source has made progress since. */
  #hasStalled = false;
  #errorsSinceMs = Infinity;

  /**
   * A source that sends nothing may take `idleTimeoutMs` after the last progress. The first stall
   * after a few bytes counts as progress, so that an only source gets another request.
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
    this.#recordOf(source).hasWrongFile = true;
  }

  /** The source's file may be right after all. */
  forgive(source: string): void {
    this.#recordOf(source).hasWrongFile = false;
  }

  /** False for a source that is done. */
  mayAsk(source: string): boolean {
    const { hasWrongFile = false, errors = 0 } = this.#records.get(source) ?? {};
    if (this.#hasBegun && this.#withoutProgress >= REQUESTS_WITHOUT_PROGRESS_MAX) return false;
    return !hasWrongFile && errors < ERRORS_MAX;
  }

  /**
   * Notes a failed attempt. True when the same source comes next: it added to the file. A source
   * that timed out does not, since each stall costs the client an idle timeout. Nor does one that
   * keeps breaking off after a few bytes: it would use up the requests of all.
   */
  failed(source: string, { failureClass, addedBytes, requests, atMs }: FailedTry): boolean {
    const record = this.#recordOf(source);
    record.hasTimedOut = failureClass === "timeout";
    record.hasWrongFile ||= failureClass === "wrong file";
    if (addedBytes > 0) record.errors = 0;
    else if (failureClass === "error") record.errors += requests;
    const isSmall = addedBytes > 0 && addedBytes < PROGRESS_BYTES_MIN;
    record.smallAdditions = isSmall ? record.smallAdditions + 1 : 0;
    if (addedBytes >= PROGRESS_BYTES_MIN) this.#progressed(atMs);
    else if (failureClass === "error") {
      const count = this.#withoutProgress + requests;
      this.#withoutProgress = this.#hasBegun ? count : Math.min(OPENING_MAX, count);
      this.#errorsSinceMs = Math.min(this.#errorsSinceMs, atMs);
    } else if (failureClass === "timeout" && addedBytes > 0) this.#stalled(atMs);
    if (addedBytes > 0) this.#hasBegun = true;
    if (record.smallAdditions >= SMALL_ADDITIONS_MAX) {
      record.smallAdditions = 0;
      return false;
    }
    return addedBytes > 0 && failureClass !== "timeout" && this.mayAsk(source);
  }

  /** The pause before the next round through all sources. `undefined`: give up. */
  pauseMs(nowMs: number): number | undefined {
    if (!this.#hasBegun) return undefined;
    const left = [...this.#records].filter(([source]) => this.mayAsk(source));
    if (left.length === 0) return undefined;
    const retryErrorsForMs = Math.min(RETRY_ERRORS_FOR_MS, this.#idleTimeoutMs);
    const part = ERROR_PAUSES[this.#round++];
    const pauseMs = part === undefined ? TIMEOUT_PAUSE_MS : part * retryErrorsForMs;
    const hasTimedOut = left.some(([, record]) => record.hasTimedOut);
    const untilMs = hasTimedOut
      ? this.#progressAtMs + this.#idleTimeoutMs
      : this.#errorsSinceMs + retryErrorsForMs;
    return nowMs + pauseMs <= untilMs ? pauseMs : undefined;
  }

  #recordOf(source: string): SourceRecord {
    const record = this.#records.get(source) ??
      { hasWrongFile: false, hasTimedOut: false, errors: 0, smallAdditions: 0 };
    this.#records.set(source, record);
    return record;
  }

  #stalled(atMs: number): void {
    if (!this.#hasStalled) this.#progressAtMs = atMs;
    this.#hasStalled = true;
  }

  #progressed(atMs: number): void {
    // Failures before the first byte still count: the client waited for them, too.
    if (this.#hasBegun) this.#withoutProgress = 0;
    this.#progressAtMs = atMs;
    this.#hasStalled = false;
    this.#errorsSinceMs = Infinity;
    this.#round = 0;
  }
}
