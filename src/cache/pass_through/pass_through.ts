import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { beginSpan, type OpenSpan, type RunBelow, type Tracer } from "../../telemetry/tracer.ts";
import { clock } from "../../runtime/current.ts";
import { type NarAnswer, type Requester, WHOLE_WAIT_MS } from "../nar/nar_answer.ts";
import type {
  FetchEnd,
  FetchOutcome,
  NarFetch,
  NarFetcher,
  NarPart,
} from "../fetch/nar_fetcher.ts";
import type { OpenSink } from "../fetch/sink_fetcher.ts";
import { signedRowOf, tagOf } from "../nar/nar_naming.ts";
import {
  NarAttempts,
  type NarAttemptsDeps,
  type NarFailure,
  type NarTarget,
} from "../sources/nar_attempts.ts";
import { Mismatch, verifySpan } from "../verify/check_nar.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { ClientReader, ClientSink } from "./client_sink.ts";
import type { PassThroughTransfers } from "./pass_through_transfers.ts";

export interface PassThroughDeps {
  readonly attempts: NarAttemptsDeps;
  readonly sinks: NarFetcher<OpenSink>;
  readonly verifier: Pick<NarVerifier, "passThrough">;
  readonly transfers: Pick<PassThroughTransfers, "enter">;
  /** False for another member. Default: true. */
  readonly isUpstream?: (url: string) => boolean;
  readonly tracer: Tracer;
}

export interface PassThroughOptions {
  readonly requestId: string;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
  /** The part for a client that has begun to read another copy. */
  readonly rest?: NarPart;
}

/** A NAR file in flight from upstreams to one client, not stored. */
class PassThrough implements NarTarget, Disposable {
  readonly #deps: PassThroughDeps;
  #nar: NarRow;
  readonly #client: ClientReader;
  readonly #span: OpenSpan;
  readonly #attempts: NarAttempts;
  readonly #left = new AbortController();
  /** Resolves to false when no upstream has the file. */
  readonly #begun = Promise.withResolvers<boolean>();
  #fetch: NarFetch;
  #sink: ClientSink | undefined;
  /** From the first bytes of a file on: how long its client waits for all of them. */
  #wholeWait: Disposable | undefined;
  /** True once its client waits no longer for all of a small file. */
  #isLate = false;
  #verifying: OpenSpan | undefined;

  private constructor(
    deps: PassThroughDeps,
    nar: NarRow,
    { requestId, rest }: Omit<PassThroughOptions, "peer">,
  ) {
    this.#deps = deps;
    this.#nar = nar;
    this.#client = new ClientReader(rest);
    const facts = { "larder.nar": nar.name };
    this.#span = beginSpan(deps.tracer, { name: "pass nar through", facts });
    const { signal } = this.#left;
    this.#attempts = new NarAttempts(deps.attempts, { nar, target: this, requestId, signal });
    this.#fetch = this.#begin();
  }

  /**
   * Resolves with the first bytes of a large file, or when a small one is complete and right, or
   * late. `undefined` when no upstream has it now.
   */
  static async open(
    deps: PassThroughDeps,
    nar: NarRow,
    options: PassThroughOptions,
  ): Promise<PassThrough | undefined> {
    const opened = new PassThrough(deps, nar, options);
    opened.#span.run(() => void opened.#run(options.peer));
    return await opened.#begun.promise ? opened : undefined;
  }

  get received(): number {
    return this.#sink?.received ?? 0;
  }

  get isGrowing(): boolean {
    return this.#sink?.state.state === "receiving";
  }

  /** Its client waits. */
  get isWanted(): boolean {
    return true;
  }

  get bytesPerSecond(): number | undefined {
    return this.#sink?.rate.bytesPerSecond;
  }

  get isPromised(): boolean {
    const isLarge = this.#sink !== undefined && !this.#sink.isSmall && this.received > 0;
    return this.#client.sent !== undefined || isLarge;
  }

  /** The size from the narinfo or an upstream, if any says it. */
  get fileSize(): number | undefined {
    return this.#sink?.fileSize;
  }

  /** True if the bytes are those of a download of another member. */
  get isJoined(): boolean {
    const { isUpstream = () => true } = this.#deps;
    const first = this.#sink?.firstUpstream;
    return first !== undefined && !isUpstream(first);
  }

  /** The bytes of a small file. */
  whole(): Bytes | undefined {
    return this.#sink?.whole();
  }

  /** A part of a large file, once. A wrong file throws before its end. */
  async *pieces(part: NarPart): AsyncGenerator<Bytes, void> {
    try {
      yield* this.#client.pieces(part);
    } finally {
      this[Symbol.dispose]();
    }
  }

  from(source: NarSource, taken: () => void): Promise<FetchOutcome> {
    return this.#fetch.from(source, taken);
  }

  abandon(): void {
    this[Symbol.dispose]();
  }

  async judge(end: FetchEnd): Promise<void> {
    await this.#sink?.judge(end);
  }

  refused(reason: Mismatch["reason"]): void {
    this.#verifying?.fail(reason);
  }

  startOver(): void {
    this.#end();
    this.#sink = undefined;
    this.#fetch = this.#begin();
  }

  doubtFile(): boolean {
    const signed = signedRowOf(this.#nar);
    if (signed === undefined) return false;
    this.#nar = signed;
    this.startOver();
    return true;
  }

  [Symbol.dispose](): void {
    this.#left.abort();
    this.#client.end();
    this.#end();
  }

  #begin(): NarFetch {
    const open: OpenSink = (listener) =>
      this.#sink = new ClientSink({
        check: {
          nar: this.#nar,
          verifier: this.#deps.verifier,
          wrong: (mismatch) => this.#attempts.wrong(mismatch),
        },
        client: this.#client,
        listener,
      });
    return this.#deps.sinks.begin(open, {
      progress: () => this.#grown(),
      // No disk limits the bytes of a pass-through.
      room: (bytes) => Promise.resolve(bytes),
    });
  }

  #grown(): void {
    this.#verifying ??= verifySpan(this.#deps.tracer, this.#nar);
    this.#wholeWait ??= clock.countdown(WHOLE_WAIT_MS, () => {
      this.#isLate = true;
      this.#stopCollecting();
    });
    this.#stopCollecting();
  }

  #stopCollecting(): void {
    if (this.#isLate && this.received > 0) this.#sink?.stopCollecting();
    if (this.isPromised) this.#begun.resolve(true);
  }

  async #run(peer: string | undefined): Promise<void> {
    const { transfers } = this.#deps;
    using _entry = transfers.enter({
      name: this.#nar.name,
      peer,
      sink: () => this.#sink,
    });
    try {
      const result = await this.#attempts.run();
      if (result.type === "failed") this.#fail(result);
      else this.#begun.resolve(true);
    } catch (error) {
      this.#fail({ reason: "broken", detail: "", error });
    } finally {
      this.#end();
      this.#wholeWait?.[Symbol.dispose]();
      this.#span.end();
    }
  }

  /** A client that left is no failure. */
  #fail(failure: NarFailure): void {
    const error = this.#errorOf(failure);
    if (!this.#left.signal.aborted) this.#span.fail(error ? reasonOf(error) : "absent");
    if (error === undefined) this.#begun.resolve(false);
    else this.#begun.reject(error);
    this.#client.end(error);
  }

  /** `undefined` when no upstream has the file. */
  #errorOf({ reason, detail, error }: NarFailure): unknown {
    const nar = this.#nar.name;
    const failure = (kind: "absent" | "unavailable" | "upstream-down", why: string) =>
      new Failure(kind, `Cannot pass NAR through: ${why}`, { nar }, error);
    if (error instanceof Mismatch) return failure("absent", detail);
    if (error !== undefined) return error;
    if (reason === "room") return failure("unavailable", detail);
    if (this.received === 0) return undefined;
    return failure("upstream-down", `it broke off after ${this.received} bytes`);
  }

  #end(): void {
    this.#fetch[Symbol.dispose]();
    this.#verifying?.end();
    this.#verifying = undefined;
  }
}

/** The label of an error; the set is closed. */
function reasonOf(error: unknown): string {
  if (error instanceof Failure) {
    return error.cause instanceof Mismatch ? error.cause.reason : error.kind;
  }
  return "broken";
}

/**
 * A NAR file for one client, without storing it. `undefined` when no upstream has it now. When this
 * resolves, a small file that is not late is complete and verified.
 */
export async function openPassThrough(
  deps: PassThroughDeps,
  nar: NarRow,
  { requestId, client: { peer } }: Requester,
): Promise<NarAnswer | undefined> {
  const transfer = await PassThrough.open(deps, nar, { requestId, peer });
  if (transfer === undefined) return undefined;
  const cacheResult = transfer.isJoined ? "JOINED" : "MISS";
  const facts = { cacheResult, tag: tagOf(nar, transfer.fileSize) } as const;
  const dispose = () => transfer[Symbol.dispose]();
  const whole = transfer.whole();
  if (whole !== undefined) {
    return {
      ...facts,
      fileSize: whole.length,
      whole() {
        dispose();
        return whole;
      },
      async read(start, end) {
        dispose();
        return new Blob([whole.subarray(start, end)]).stream();
      },
      [Symbol.asyncDispose]: async () => dispose(),
    };
  }
  return {
    ...facts,
    fileSize: transfer.fileSize,
    whole: () => undefined,
    read: async (start, end) => streamOf(transfer.pieces({ start, end }), dispose),
    [Symbol.asyncDispose]: async () => dispose(),
  };
}

/** The part for a client that has begun to read a download which then failed. */
interface RestOptions extends NarPart, Omit<PassThroughOptions, "rest"> {
  /** The trace of the client's request: the rest starts after its span may have ended. */
  readonly run: RunBelow;
}

/** The rest of a NAR file that could not be stored. */
export async function* restPassedThrough(
  deps: PassThroughDeps,
  nar: NarRow,
  { requestId, peer, run, ...rest }: RestOptions,
): AsyncGenerator<Bytes, void> {
  const transfer = await run(() => PassThrough.open(deps, nar, { requestId, peer, rest }));
  if (transfer === undefined) {
    const message = "Cannot pass NAR through: no upstream has it";
    throw new Failure("upstream-down", message, { nar: nar.name });
  }
  yield* transfer.pieces(rest);
}
