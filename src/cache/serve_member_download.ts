import type { NarRecord, NarSource } from "../metadata/metadata_store.ts";
import type { NarBody, NarRequest } from "../upstream/upstream.ts";
import { NotKept } from "./download/run_download.ts";
import type { Downloads } from "./download/downloads.ts";
import { FetchError } from "./fetch/nar_fetcher.ts";
import type { NarClient } from "./fetch/sink_fetcher.ts";
import type { NarAnswer, Requester } from "./nar/nar_answer.ts";
import { openPassThrough, type PassThroughDeps } from "./pass_through/pass_through.ts";
import type { MemberNarServer } from "./serve_member.ts";
import { type MemberNarSources, OWN_COPY_URL } from "./sources/nar_candidates.ts";

export interface MemberDownloadsDeps {
  readonly members: MemberNarSources;
  readonly downloads: Pick<Downloads, "join">;
  /** Answers from the files of this member. */
  readonly here: Pick<MemberNarServer, "open">;
  readonly passThrough: PassThroughDeps;
  /** Sinks like those of `passThrough`; `own` has the URL `OWN_COPY_URL`. */
  readonly sinks: (own: NarClient) => PassThroughDeps["sinks"];
}

/**
 * NARs that another member downloads. Where that one stops, or is late, this member makes its own
 * copy, which all its clients share; then come upstreams.
 */
export class MemberDownloads {
  readonly #deps: MemberDownloadsDeps;

  constructor(deps: MemberDownloadsDeps) {
    this.#deps = deps;
  }

  /** `undefined` where no other member downloads the file. */
  async open(nar: NarRecord, requester: Requester): Promise<NarAnswer | undefined> {
    const { members, passThrough, sinks } = this.#deps;
    const holder = await members.sourceOf(nar.name);
    if (holder === undefined) return undefined;
    const own = new OwnCopy(async (signal) => {
      // It stopped, or is late: its machine may be gone.
      await members.stopped(nar.name, holder);
      // It answered after all, or the client left.
      if (signal.aborted) return undefined;
      return await this.#openOwn(nar, requester);
    });
    const { attempts } = passThrough;
    const candidates = { ...attempts.candidates, members: downloadedBy(holder, members) };
    const remote = { ...passThrough, sinks: sinks(own), attempts: { ...attempts, candidates } };
    return await openPassThrough(remote, nar, requester);
  }

  /** An answer from this member, with a new download if this member has the lease. */
  async #openOwn(nar: NarRecord, { requestId, client }: Requester): Promise<NarAnswer | undefined> {
    const { downloads, here } = this.#deps;
    try {
      await downloads.join(nar, requestId).download.hasLease();
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
    }
    return await here.open(nar.name, requestId, client);
  }
}

/** The holder, then this member, then the member that took over from the holder. */
function downloadedBy(holder: NarSource, members: MemberNarSources): MemberNarSources {
  return {
    sourceOf: () => Promise.resolve(holder),
    stopped: (nar, stopped) => members.stopped(nar, stopped),
    async *after(nar) {
      yield { upstream: OWN_COPY_URL, location: nar };
      const next = await members.sourceOf(nar);
      if (next !== undefined && next.upstream !== holder.upstream) yield next;
    },
  };
}

/**
 * How long a client waits until the copy has more than it has. Then an upstream sends the rest to
 * it alone. At 50 MB/s the copy reaches 250 MB meanwhile.
 */
const CATCH_UP_MAX_MS = 5_000;

/** `undefined`: the copy is another member's to make, or the signal has fired. */
type OpenOwnCopy = (signal: AbortSignal) => Promise<NarAnswer | undefined>;

/**
 * This member's own copy of a NAR file, as a source of it: the stored file, or a download. All its
 * clients share that one. It follows another member that stops sending, or is late.
 */
export class OwnCopy implements NarClient {
  readonly idleTimeoutMs = CATCH_UP_MAX_MS;
  readonly isTakenByHead = true;
  readonly #open: OpenOwnCopy;

  constructor(open: OpenOwnCopy) {
    this.#open = open;
  }

  async openNar(_location: string, { offset, signal, requested }: NarRequest): Promise<NarBody> {
    requested?.();
    const answer = await this.#open(signal);
    // "outrun" is no failure: larder asks the next source, and may ask this one again.
    if (answer === undefined) throw new FetchError("outrun", "another source is nearer");
    if (signal.aborted) await answer[Symbol.asyncDispose]();
    signal.throwIfAborted();
    const { fileSize } = answer;
    const pieces = await answer.read(offset);
    return {
      ...(fileSize === undefined ? {} : { fileSize }),
      offset,
      body: bodyOf(pieces.getReader(), () => answer.release?.(true), signal),
      framed: true,
    };
  }
}

/**
 * A stream of bytes, until the signal fires. It copies each piece, because a stored file's may be
 * in shared memory. `release` is called once, at the end.
 */
function bodyOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  release: () => void,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    release();
    // It may wait for a piece that is long in coming.
    reader.cancel().catch(() => undefined);
  };
  return new ReadableStream({
    type: "bytes",
    start(controller) {
      const abort = () => {
        if (!isOver) controller.error(signal.reason);
        end();
      };
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    },
    async pull(controller) {
      const piece = await reader.read().catch((error) => {
        end();
        throw error;
      });
      if (isOver) return;
      if (!piece.done) return controller.enqueue(piece.value.slice());
      end();
      controller.close();
      // A reader with a buffer of its own gets it back.
      controller.byobRequest?.respond(0);
    },
    cancel: end,
  });
}
