import type { Bytes } from "../../../base/bytes.ts";
import { Failure } from "../../../base/failure.ts";
import { streamOf } from "../../../base/stream_of.ts";
import type { StorePathHash } from "../../../nix/store_path.ts";
import { clock } from "../../../runtime/current.ts";
import type { NarBodySource, NarinfoSource } from "../../../upstream/upstream.ts";
import type { SourceEntry } from "../import_source.ts";
import type { CacheReader } from "./binary_cache_source.ts";

export interface UpstreamReaderDeps {
  readonly narinfos: Pick<NarinfoSource, "narinfo">;
  readonly nars: Pick<NarBodySource, "openNar">;
  /** The longest pause within a NAR file. */
  readonly idleTimeoutMs: number;
  readonly nowMs: () => number;
  /** Closes the connections. */
  readonly close: () => void;
}

/**
 * A binary cache that larder reaches as it reaches an upstream. An import has one source for a NAR,
 * and lists a NAR that breaks off, so it needs none of a download's attempts.
 */
export class UpstreamReader implements CacheReader {
  readonly #deps: UpstreamReaderDeps;

  constructor(deps: UpstreamReaderDeps) {
    this.#deps = deps;
  }

  async read(storePathHash: StorePathHash, signal: AbortSignal): Promise<SourceEntry> {
    const { narinfos, nowMs } = this.#deps;
    const reading = await narinfos.narinfo(storePathHash, signal);
    if (reading.kind === "absent") throw new Failure("absent", "the cache does not have it");
    if (reading.kind === "failed") throw new Failure("upstream-down", reading.detail);
    const { narinfo } = reading;
    const fileSize = narinfo.fileSize;
    const open = (signal: AbortSignal) => this.#open(narinfo.url, signal);
    return { narinfo, usedAtMs: nowMs(), nar: { kind: "stream", fileSize, open } };
  }

  [Symbol.dispose](): void {
    this.#deps.close();
  }

  async #open(url: string, signal: AbortSignal) {
    const { nars, idleTimeoutMs } = this.#deps;
    const found = await nars.openNar(url, { offset: 0, signal });
    if (found === undefined) throw new Failure("absent", "the cache does not have its NAR");
    return streamOf(steady(found.body, idleTimeoutMs));
  }
}

/** The pieces of a body. Throws a Failure for a pause that is too long. */
async function* steady(
  body: ReadableStream<Uint8Array>,
  idleTimeoutMs: number,
): AsyncGenerator<Bytes> {
  const reader = body.getReader();
  try {
    for (;;) {
      const read = await clock.within(reader.read(), idleTimeoutMs);
      if (read === undefined) throw new Failure("upstream-down", "its NAR stalled");
      if (read.done) return;
      yield new Uint8Array(read.value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
