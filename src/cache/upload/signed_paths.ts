import type {
  NarinfoRow,
  SignedPathChange,
  SignedPathFinder,
} from "../../metadata/metadata_store.ts";
import { fingerprintDigestOf } from "../../nix/fingerprint.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { NarinfoFetches } from "../narinfo/narinfo_fetches.ts";
import type { NegativeCache } from "../narinfo/serve_narinfo.ts";
import { UploadRefused } from "./upload_body.ts";

/** An upstream is down after this many requests without an answer. */
const TRIES_MAX = 3;

/** The upstreams that may have signed an uploaded path. */
export interface ComparedUpstreams {
  /** Asks those that are up, and stores their narinfo. */
  readonly narinfos: Pick<NarinfoFetches, "fetch">;
  /** Paths that they lack, as asked of late. */
  readonly negative: Pick<NegativeCache, "has">;
  readonly isAnyUp: () => boolean;
}

export interface SignedPathsDeps {
  readonly metadata: SignedPathFinder;
  /** `undefined`: there are none. */
  readonly upstreams: ComparedUpstreams | undefined;
  /** The most paths of a kind that larder remembers. */
  readonly countMax: () => number;
}

/**
 * The paths that an upload without a trusted signature must not replace: those that larder has
 * signed, stored or not, and those that an upstream has. No use, no size limit and no retention
 * takes anything from their memory. Where it is full, larder signs no further upload.
 */
export class SignedPaths {
  readonly #deps: SignedPathsDeps;

  constructor(deps: SignedPathsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves to the upstreams' narinfo of the path, where they were asked and have one. Throws
   * UploadRefused where larder has signed another one, or could not tell.
   */
  async compared(narinfo: Narinfo, requestId: string): Promise<NarinfoRow | undefined> {
    const { metadata, upstreams } = this.#deps;
    const { storePathHash } = narinfo;
    const signed = await metadata.findSigned(storePathHash);
    if (signed?.digest === fingerprintDigestOf(narinfo)) return undefined;
    if (signed !== undefined) {
      const line = "expected the NAR hash, NAR size and references that larder has signed before";
      throw new UploadRefused("conflict", line);
    }
    const found = upstreams && await this.#upstreamsRow(upstreams, storePathHash, requestId);
    if (found === undefined) await this.#requireRoom();
    return found;
  }

  /** The change that remembers a narinfo which larder signs. `isSigned`: by a trusted key. */
  remembered(narinfo: Narinfo, isSigned: boolean): SignedPathChange {
    const { storePathHash } = narinfo;
    const digest = fingerprintDigestOf(narinfo);
    const signed = { storePathHash, digest, isUploaded: !isSigned, unlessOther: !isSigned };
    return { kind: "put-signed", ...signed, countMax: this.#deps.countMax() };
  }

  async #upstreamsRow(
    { narinfos, negative, isAnyUp }: ComparedUpstreams,
    storePathHash: StorePathHash,
    requestId: string,
  ): Promise<NarinfoRow | undefined> {
    if (negative.has(storePathHash)) return undefined;
    for (let left = TRIES_MAX;; left--) {
      const { narinfo } = await narinfos.fetch({ storePathHash, row: undefined, requestId });
      if (narinfo.kind === "found") return narinfo.row;
      if (narinfo.kind === "absent") return undefined;
      if (!isAnyUp()) break;
      if (left === 1) throw unknown("an upstream that says whether it has this path");
    }
    // larder has not seen the path, unless the memory of the upstreams' paths was full.
    const { upstream } = await this.#deps.metadata.signedCounts();
    if (upstream >= this.#deps.countMax()) throw unknown("an upstream that is up");
    return undefined;
  }

  async #requireRoom(): Promise<void> {
    const { uploaded } = await this.#deps.metadata.signedCounts();
    if (uploaded < this.#deps.countMax()) return;
    const line = `expected at most ${this.#deps.countMax()} uploaded paths; remove some by DELETE`;
    throw new UploadRefused("no-room", line);
  }
}

function unknown(expected: string): UploadRefused {
  return new UploadRefused("overloaded", `expected ${expected}`);
}
