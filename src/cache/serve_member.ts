import { streamOf } from "../base/stream_of.ts";
import type { NarFinder, NarRecord } from "../metadata/metadata_store.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Client, NarAnswer, Requester } from "./nar/nar_answer.ts";
import type { Download } from "./download/run_download.ts";
import type { Downloads } from "./download/downloads.ts";
import { type KeptNars, openStored, type StoredAnswerDeps } from "./kept/kept_nars.ts";
import { announcedFileSize } from "./nar/nar_naming.ts";

export interface MemberNarServerDeps {
  readonly metadata: Pick<NarFinder, "findNar">;
  readonly kept: Pick<KeptNars, "open">;
  readonly downloads: Pick<Downloads, "find">;
  readonly reads: ActiveReads;
  readonly forms: StoredAnswerDeps["forms"];
}

/** Answers the NAR requests of other members from this one's files. It sends no request. */
export class MemberNarServer {
  readonly #deps: MemberNarServerDeps;

  constructor(deps: MemberNarServerDeps) {
    this.#deps = deps;
  }

  /** `undefined` for a file that is neither stored nor in flight. */
  open(narName: NarName, requestId: string, client: Client): Promise<NarAnswer | undefined> {
    return this.#open(narName, { requestId, client }, (download) => download.want());
  }

  /** The same for HEAD, which is no use of a prefetch. */
  stat(narName: NarName, requestId: string, client: Client): Promise<NarAnswer | undefined> {
    return this.#open(narName, { requestId, client }, () => undefined);
  }

  async #open(
    narName: NarName,
    requester: Requester,
    found: (download: Download) => void,
  ): Promise<NarAnswer | undefined> {
    const nar = await this.#deps.metadata.findNar(narName);
    if (nar === undefined) return undefined;
    return await openStored(this.#deps, nar, requester) ??
      this.#openGrowing(nar, requester, found) ??
      await this.#openStoredSince(narName, requester);
  }

  #openGrowing(
    nar: NarRecord,
    { client: { peer } }: Requester,
    found: (download: Download) => void,
  ): NarAnswer | undefined {
    const download = this.#deps.downloads.find(nar.name);
    if (download === undefined || download.state.state === "failed") return undefined;
    found(download);
    const fileSize = download.fileSize ?? announcedFileSize(nar);
    return growingAnswer(download, { fileSize, tag: nar.fileHash, peer });
  }

  /** The download may have ended since the row was read. */
  async #openStoredSince(narName: NarName, requester: Requester): Promise<NarAnswer | undefined> {
    const nar = await this.#deps.metadata.findNar(narName, { fresh: true });
    return nar && await openStored(this.#deps, nar, requester);
  }
}

interface GrowingFacts extends Pick<NarAnswer, "fileSize" | "tag"> {
  readonly peer: string | undefined;
}

/**
 * The bytes of a running download as they arrive. The head leaves before the first byte: it says
 * that this member is at work, so that the other asks no upstream beside it.
 */
function growingAnswer(download: Download, { peer, ...facts }: GrowingFacts): NarAnswer {
  const use = download.use(peer);
  const release = () => use[Symbol.dispose]();
  async function* pieces(start: number, end: number | undefined) {
    await download.settledIfSmall(facts.fileSize);
    await download.readable(start, end);
    download.promise();
    yield* download.read({ passThrough: brokenOff, peer }, start, end);
  }
  return {
    cacheResult: "JOINED",
    ...facts,
    whole: () => undefined,
    read: async (start, end) => streamOf(pieces(start, end), release),
    [Symbol.asyncDispose]: async () => release(),
  };
}

/** The other member has other sources: it notices the break, and goes on with the next one. */
async function* brokenOff(): AsyncGenerator<never, void> {
  const text = "Cannot send the rest of the download: it is not stored here";
  yield await Promise.reject<never>(new Error(text));
}
