import { within } from "../../base/deadline.ts";
import { Failure } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { NarBody, NarBodySource } from "../../upstream/upstream.ts";
import { announcedFileSize, hasKnownFileHash } from "../nar_naming.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";

/** Attempts to go on, one after the other, that bring no byte. */
const FRUITLESS_MAX = 3;

export interface UnkeptBodyDeps extends NarCandidatesDeps {
  /** By the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "openNar">>;
  /** Longest silence within a body. */
  readonly idleTimeoutMs: number;
}

/**
 * The bytes of a NAR file, from whichever upstreams have it: where one breaks off, the same or
 * another goes on. What they send is for a hash to judge.
 */
export class UnkeptBody implements AsyncDisposable {
  readonly #deps: UnkeptBodyDeps;
  readonly #nar: NarRow;
  readonly #requestId: string;
  readonly #abort = new AbortController();
  /** Upstreams that bytes came from, in the order of the file. */
  readonly #contributors: string[] = [];
  #open: NarBody | undefined;
  #fileSize: number | undefined;

  private constructor(deps: UnkeptBodyDeps, nar: NarRow, requestId: string) {
    this.#deps = deps;
    this.#nar = nar;
    this.#requestId = requestId;
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

  /** Everything from the first byte on, once. Throws when no upstream brings the rest. */
  async *pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let position = 0;
    for (let fruitless = 0; fruitless < FRUITLESS_MAX; fruitless++) {
      if (fruitless > 0 && !await this.#openAt(position)) break;
      try {
        for await (const piece of this.#piecesFrom(position)) {
          position += piece.length;
          fruitless = 0;
          yield piece;
        }
        if (position >= (this.#fileSize ?? 0)) return;
      } catch (error) {
        if (error instanceof Failure && error.kind === "corrupt") throw error;
      }
    }
    const { name } = this.#nar;
    const why = `it broke off after ${position} bytes`;
    throw new Failure("upstream-down", `Cannot pass NAR on: ${why}`, { nar: name });
  }

  /** The bytes are wrong: whoever sent the first of them is asked last next time. */
  blame(): void {
    const [upstream] = this.#contributors;
    if (upstream !== undefined) this.#deps.demotions.add(this.#nar.name, upstream, "bad");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#open?.body.cancel().catch(() => undefined);
  }

  /** What the open body has beyond `position`. Throws when it is too much, or nothing comes. */
  async *#piecesFrom(position: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    if (this.#open === undefined) return;
    const { body, offset } = this.#open;
    this.#open = undefined;
    let skip = position - offset;
    let room = (this.#fileSize ?? Infinity) - position;
    const reader = body.getReader();
    try {
      for (;;) {
        const result = await within(reader.read(), this.#deps.idleTimeoutMs);
        if (result === undefined || result.done) return;
        const piece = result.value.subarray(Math.min(skip, result.value.length));
        skip -= result.value.length - piece.length;
        if (piece.length > room && !hasKnownFileHash(this.#nar)) {
          const facts = { nar: this.#nar.name };
          throw new Failure("corrupt", "Cannot pass NAR on: it is larger than announced", facts);
        }
        // A hash judges what was announced: what is sent behind it is not read.
        const wanted = piece.subarray(0, room);
        room -= wanted.length;
        if (wanted.length > 0) yield wanted as Uint8Array<ArrayBuffer>;
        if (wanted.length < piece.length) return;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  async #openAt(position: number): Promise<boolean> {
    const { narSources } = this.#deps;
    for await (const source of narCandidates(this.#deps, this.#nar, this.#requestId)) {
      const body = await narSources.get(source.upstream)
        ?.openNar(source.location, position, this.#abort.signal)
        .catch(() => undefined);
      if (body === undefined) continue;
      const expected = this.#fileSize ?? body.fileSize;
      if (body.offset <= position && (body.fileSize ?? expected) === expected) {
        this.#fileSize = expected;
        this.#open = body;
        this.#contributors.push(source.upstream);
        return true;
      }
      // It has another file by now, or its narinfo lied: that is asked for again.
      if (body.offset <= position) {
        this.#deps.demotions.add(this.#nar.name, source.upstream, "bad");
      }
      await body.body.cancel().catch(() => undefined);
    }
    return false;
  }
}
