import { Failure } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { announcedFileSize } from "../nar_naming.ts";
import { AttemptLog, type AttemptLogDeps } from "../sources/attempt_log.ts";
import { Mismatch } from "../verify/mismatch.ts";
import { narCandidates, type NarCandidatesDeps } from "../sources/nar_candidates.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";
import { GIVEN_UP, type NarPieces, type PieceEvents } from "./nar_pieces.ts";
import { soundOf, SourceFailures } from "../sources/source_failures.ts";
import { type AskedSource, firstToAnswer } from "../sources/source_race.ts";
import { SourceRounds } from "../sources/source_rounds.ts";

export interface UnkeptBodyDeps extends NarCandidatesDeps, AttemptLogDeps {
  readonly demotions: AttemptLogDeps["demotions"];
  readonly pool: NarCandidatesDeps["pool"] & AttemptLogDeps["pool"];
  readonly pieces: NarPieces;
  /** So long a client waits for a source that has fallen silent. */
  readonly idleTimeoutMs: number;
  /** So long a source is waited for alone. */
  readonly hedgeAfterMs: number;
}

export interface UnkeptOptions {
  readonly requestId: string;
  /** Upstreams that are not asked, by URL. */
  readonly except?: Iterable<string> | undefined;
}

interface AskedPieces extends AskedSource {
  readonly events: PieceEvents;
  /** Once it has answered, where it says so. */
  readonly fileSize: number | undefined;
}

/**
 * The bytes of a NAR file, from whichever upstreams have it: where one breaks off, the same or
 * another goes on. What they send is for a hash to judge.
 */
export class UnkeptBody implements AsyncDisposable {
  readonly #deps: UnkeptBodyDeps;
  readonly #nar: NarRow;
  readonly #notes: AttemptLog;
  readonly #abort = new AbortController();
  readonly #failures: SourceFailures;
  readonly #sources: SourceRounds;
  /** Upstreams that bytes came from, in the order of the file. */
  readonly #contributors = new Set<string>();
  #open: AskedPieces | undefined;
  #fileSize: number | undefined;
  #received = 0;

  private constructor(
    deps: UnkeptBodyDeps,
    nar: NarRow,
    { requestId, except = [] }: UnkeptOptions,
  ) {
    this.#deps = deps;
    this.#nar = nar;
    this.#notes = new AttemptLog(deps, nar.name, requestId);
    this.#failures = new SourceFailures(deps.idleTimeoutMs, performance.now());
    for (const upstream of except) this.#failures.refuse(upstream);
    const candidates = () => narCandidates(deps, nar, requestId);
    this.#sources = new SourceRounds(candidates, this.#failures);
    this.#fileSize = announcedFileSize(nar);
  }

  /** `undefined` when no upstream has it now. */
  static async open(
    deps: UnkeptBodyDeps,
    nar: NarRow,
    options: UnkeptOptions,
  ): Promise<UnkeptBody | undefined> {
    const body = new UnkeptBody(deps, nar, options);
    if (!await body.#openNext()) {
      body.#notes.givenUp();
      return undefined;
    }
    body.#failures.begin();
    return body;
  }

  /** Where the narinfo or an upstream says it. */
  get fileSize(): number | undefined {
    return this.#fileSize;
  }

  /** Bytes of the file that came. */
  get received(): number {
    return this.#received;
  }

  /** Everything from the first byte on, once. Throws when no upstream brings the rest. */
  async *pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    do {
      if (this.#open === undefined) break;
      const { source, events } = this.#open;
      const before = this.#received;
      for (;;) {
        const { value, done } = await events.next();
        if (done) {
          if (this.#isWhole(source, value, this.#received - before)) return;
          break;
        }
        if (value.type !== "bytes") continue;
        this.#contributors.add(source.upstream);
        this.#received += value.bytes.length;
        yield value.bytes;
      }
    } while (await this.#goOn());
    this.#notes.givenUp();
    throw this.#failure(`it broke off after ${this.#received} bytes`);
  }

  /** The verdict on its pieces: they are not the file. Returns the upstream that is to blame. */
  wrong(mismatch: Mismatch): string {
    const contributors = [...this.#contributors];
    const upstream = this.#open?.source.upstream ?? "";
    this.#notes.wrong(upstream, mismatch, contributors);
    return contributors[0] ?? upstream;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#open?.events.return(GIVEN_UP);
  }

  /** Asks for the rest, until somebody has it or all are given up. */
  async #goOn(): Promise<boolean> {
    do {
      if (await this.#openNext()) return true;
    } while (await this.#sources.another(this.#abort.signal));
    return false;
  }

  /** Asks for the bytes that are missing, until one upstream has them. */
  async #openNext(): Promise<boolean> {
    const opened = await firstToAnswer({
      next: () => this.#sources.next(),
      ask: (source) => this.#ask(source),
      putBack: (source) => this.#sources.putBack(source),
      hedgeAfterMs: this.#deps.hedgeAfterMs,
    });
    if (opened === undefined) return false;
    this.#open = opened;
    this.#fileSize ??= opened.fileSize;
    return true;
  }

  #ask(source: NarSource): AskedPieces {
    const position = this.#received;
    this.#notes.asking(source.upstream, position);
    const quicker = new AbortController();
    const signal = AbortSignal.any([this.#abort.signal, quicker.signal]);
    const order = { nar: this.#nar, position, fileSize: this.#fileSize, signal };
    const events = this.#deps.pieces.from(source, order);
    const asked = { source, events, fileSize: undefined as number | undefined };
    const answered = events.next().then(({ value, done }) => {
      if (done) this.#note(source, value, 0);
      else if (value.type === "opened") asked.fileSize = value.fileSize;
      return !done;
    });
    const cancel = () => {
      quicker.abort();
      events.return(GIVEN_UP).catch(() => undefined);
    };
    return Object.assign(asked, { answered, cancel });
  }

  /** Throws when nobody else can help any more. */
  #isWhole(source: NarSource, outcome: SourceOutcome, addedBytes: number): boolean {
    this.#note(source, outcome, addedBytes);
    if (outcome.type === "failed" && soundOf(outcome.reason) === undefined) {
      throw this.#failure(outcome.detail);
    }
    return outcome.type === "end";
  }

  #note(source: NarSource, outcome: SourceOutcome, addedBytes: number): void {
    const { upstream } = source;
    this.#notes.answered(upstream, outcome);
    if (outcome.type === "end") {
      if (outcome.surplus) this.#notes.surplus(upstream);
      return;
    }
    const how = outcome.type === "absent" ? "useless" : soundOf(outcome.reason);
    if (how === undefined) return;
    const { requests = 1 } = outcome;
    this.#sources.failed(source, { how, addedBytes, requests });
    if (outcome.type === "absent") this.#notes.lost(upstream);
    else if (outcome.reason === "size") {
      this.#notes.wrong(upstream, new Mismatch("file_size", outcome.detail), [upstream]);
    } else this.#notes.brokeOff(upstream, { detail: outcome.detail, received: this.#received });
  }

  #failure(why: string): Failure {
    return new Failure("upstream-down", `Cannot pass NAR on: ${why}`, { nar: this.#nar.name });
  }
}
