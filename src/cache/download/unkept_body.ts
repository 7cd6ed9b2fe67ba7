import { Failure } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { announcedFileSize } from "../nar_naming.ts";
import { AttemptNotes, type AttemptNotesDeps } from "./attempt_notes.ts";
import { Mismatch } from "./mismatch.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import type { SourceOutcome } from "./nar_fetcher.ts";
import { GIVEN_UP, type NarPieces, type PieceEvents } from "./nar_pieces.ts";

/** Attempts to go on, one after the other, that bring no byte. */
const FRUITLESS_MAX = 3;

export interface UnkeptBodyDeps extends NarCandidatesDeps, AttemptNotesDeps {
  readonly demotions: AttemptNotesDeps["demotions"];
  readonly pool: NarCandidatesDeps["pool"] & AttemptNotesDeps["pool"];
  readonly pieces: NarPieces;
}

interface Came {
  /** Bytes of the file, from all upstreams. */
  readonly received: number;
  /** Whether the one that is talked of brought some of them. */
  readonly hasGrown: boolean;
}

/**
 * The bytes of a NAR file, from whichever upstreams have it: where one breaks off, the same or
 * another goes on. What they send is for a hash to judge.
 */
export class UnkeptBody implements AsyncDisposable {
  readonly #deps: UnkeptBodyDeps;
  readonly #nar: NarRow;
  readonly #requestId: string;
  readonly #notes: AttemptNotes;
  readonly #abort = new AbortController();
  /** Upstreams that are of no use: their file is not the right one, or it does not go on. */
  readonly #useless = new Map<string, "for good" | "for now">();
  /** Upstreams that bytes came from, in the order of the file. */
  readonly #contributors = new Set<string>();
  #open: { readonly upstream: string; readonly events: PieceEvents } | undefined;
  #fileSize: number | undefined;
  #received = 0;

  private constructor(deps: UnkeptBodyDeps, nar: NarRow, requestId: string) {
    this.#deps = deps;
    this.#nar = nar;
    this.#requestId = requestId;
    this.#notes = new AttemptNotes(deps, nar.name, requestId);
    this.#fileSize = announcedFileSize(nar);
  }

  /** `undefined` when no upstream has it now. */
  static async open(
    deps: UnkeptBodyDeps,
    nar: NarRow,
    requestId: string,
  ): Promise<UnkeptBody | undefined> {
    const body = new UnkeptBody(deps, nar, requestId);
    return await body.#openAt(0) ? body : undefined;
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
    for (let fruitless = 0; fruitless < FRUITLESS_MAX; fruitless++) {
      if (fruitless > 0 && !await this.#goOnAt(this.#received)) break;
      if (this.#open === undefined) break;
      const { upstream, events } = this.#open;
      const before = this.#received;
      for (;;) {
        const { value, done } = await events.next();
        if (done) {
          const came = { received: this.#received, hasGrown: this.#received > before };
          if (this.#isWhole(upstream, value, came)) return;
          break;
        }
        if (value.type !== "bytes") continue;
        this.#contributors.add(upstream);
        this.#received += value.bytes.length;
        fruitless = 0;
        this.#hope();
        yield value.bytes;
      }
    }
    throw this.#failure(`it broke off after ${this.#received} bytes`);
  }

  /** The verdict on its pieces: they are not the file. */
  wrong(mismatch: Mismatch): void {
    if (this.#open !== undefined) {
      this.#notes.wrong(this.#open.upstream, mismatch, [...this.#contributors]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#open?.events.return(GIVEN_UP);
  }

  /** Whoever got stuck is asked once more when nobody else has the rest. */
  async #goOnAt(position: number): Promise<boolean> {
    if (await this.#openAt(position)) return true;
    return this.#hope() && await this.#openAt(position);
  }

  /** True where somebody who got stuck may be asked again now. */
  #hope(): boolean {
    const stuck = [...this.#useless].filter(([, how]) => how === "for now");
    for (const [upstream] of stuck) this.#useless.delete(upstream);
    return stuck.length > 0;
  }

  /** Asks one upstream after the other for the bytes from `position` on, until one has them. */
  async #openAt(position: number): Promise<boolean> {
    for await (const source of narCandidates(this.#deps, this.#nar, this.#requestId)) {
      if (this.#useless.has(source.upstream)) continue;
      this.#notes.asking(source.upstream, position);
      const events = this.#eventsOf(source, position);
      const { value, done } = await events.next();
      if (done) {
        this.#note(source.upstream, value, { received: position, hasGrown: false });
        continue;
      }
      if (value.type === "opened") this.#fileSize ??= value.fileSize;
      this.#open = { upstream: source.upstream, events };
      return true;
    }
    return false;
  }

  #eventsOf(source: NarSource, position: number): PieceEvents {
    const { signal } = this.#abort;
    const order = { nar: this.#nar, position, fileSize: this.#fileSize, signal };
    return this.#deps.pieces.from(source, order);
  }

  /** Throws when nobody else can help any more. */
  #isWhole(upstream: string, outcome: SourceOutcome, came: Came): boolean {
    this.#note(upstream, outcome, came);
    if (outcome.type !== "failed") return outcome.type === "end";
    if (outcome.reason === "cancelled") throw this.#failure(outcome.detail);
    return false;
  }

  #note(
    upstream: string,
    outcome: SourceOutcome,
    { received, hasGrown }: Came,
  ): void {
    this.#notes.answered(upstream, outcome);
    if (outcome.type === "absent") {
      this.#useless.set(upstream, "for good");
      this.#notes.lost(upstream);
    } else if (outcome.type === "end") {
      if (outcome.surplus) this.#notes.surplus(upstream);
    } else if (outcome.reason === "size") {
      this.#useless.set(upstream, "for good");
      this.#notes.wrong(upstream, new Mismatch("file_size", outcome.detail), [upstream]);
    } else if (outcome.reason !== "cancelled") {
      const how = outcome.reason === "differs" ? "for good" : "for now";
      if (how === "for good" || !hasGrown) this.#useless.set(upstream, how);
      this.#notes.brokeOff(upstream, { detail: outcome.detail, received });
    }
  }

  #failure(why: string): Failure {
    return new Failure("upstream-down", `Cannot pass NAR on: ${why}`, { nar: this.#nar.name });
  }
}
