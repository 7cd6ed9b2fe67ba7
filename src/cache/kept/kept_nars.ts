import { digestOf } from "../../base/digest_of.ts";
import { type Facts, Failure, messageOf } from "../../base/failure.ts";
import { lruOf } from "../../base/lru.ts";
import { SingleFlight } from "../../base/single_flight.ts";
import type {
  ChangeWriter,
  KeptFile,
  NarFinder,
  NarRecord,
} from "../../metadata/metadata_store.ts";
import type { Compression } from "../../nix/compression.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { narNameOf, type Seal, type StoredName } from "../../nix/stored_name.ts";
import { clock } from "../../runtime/current.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Sweeper } from "../../space/sweeper.ts";
import type { NarReader, OpenOptions, StoredNar } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Downloads } from "../download/downloads.ts";
import type { NarForms } from "../forms/nar_forms.ts";
import { formOf } from "../forms/recompressed.ts";
import { type NarAnswer, type Requester, STORED_WHOLE_BYTES_MAX } from "../nar/nar_answer.ts";

/** A file that changes during this many checks counts as absent. */
const CHECKS_MAX = 3;

/** A problem that is older is shown no more. */
const REPORTED_FOR_MS = 15 * 60_000;

/** NARs that one probe looks at. */
const LOOKS_MAX = 32;

/** The wait for the removal of a wrong file before a new download. */
const REMOVAL_WAIT_MS = 500;

interface KeptNarsDeps {
  readonly metadata: Pick<NarFinder, "findNar"> & ChangeWriter;
  readonly nars: NarReader;
  readonly sweeper: Pick<Sweeper, "markAndSweep">;
  readonly downloads: Pick<Downloads, "has">;
  /** Called after the removal of a wrong file. */
  readonly changed: () => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** An open stored file, and its row's facts. */
export interface OpenKeptFile {
  readonly kept: KeptFile;
  readonly stored: StoredNar;
}

/** An open file of the right size whose bytes are not verified. */
interface UnverifiedFile extends OpenKeptFile {
  readonly name: NarName;
  readonly requestId: string;
}

/**
 * Opens stored NAR files that are still the verified ones. It hashes a file whose seal differs from
 * its row's before larder sends the first byte. Otherwise a client could resume behind wrong bytes.
 */
export class KeptNars {
  readonly #deps: KeptNarsDeps;
  readonly #known = new KnownFiles();
  readonly #checks = new SingleFlight<StoredName, Content>();
  /** When a kept object was found missing or damaged. It may come back: a disk does. */
  readonly #lost = lruOf<StoredName, number>({ countMax: ENTRIES_MAX });

  /** The lost files that the log has named, until their NARs are stored again. */
  readonly #reported = lruOf<StoredName, number>({ countMax: ENTRIES_MAX });

  #wasLost: (narName: NarName) => void = () => undefined;
  #returned: (narName: NarName) => void = () => undefined;

  /** Removals and seals that no request waits for any more. */
  readonly #writes = new Set<Promise<void>>();

  constructor(deps: KeptNarsDeps) {
    this.#deps = deps;
  }

  /** Calls `on` when a kept file is found lost, by whatever looked for it. */
  whenLost(on: (narName: NarName) => void): void {
    this.#wasLost = on;
  }

  /** Calls `on` when a lost file is found again: a disk was away. */
  whenReturned(on: (narName: NarName) => void): void {
    this.#returned = on;
  }

  /** Resolves when no removal or seal is being written: the stores may close. */
  async idle(): Promise<void> {
    while (this.#writes.size > 0) await Promise.all(this.#writes);
  }

  /**
   * `undefined` for a missing, cut or wrong file, which must be fetched again; and while the store
   * does not answer.
   */
  async open(
    nar: NarRecord,
    requestId: string,
    options: OpenOptions,
  ): Promise<OpenKeptFile | undefined> {
    try {
      return await this.find(nar, requestId, options);
    } catch (error) {
      // The store logs its outage.
      if (error instanceof Failure && error.kind === "unavailable") return undefined;
      throw error;
    }
  }

  /**
   * False for a NAR whose file is not kept, or was found to be lost and still is. It looks at no
   * other file: that would cost each narinfo an opened file.
   */
  isHere(nar: NarRecord, requestId: string): boolean | Promise<boolean> {
    if (nar.kept === undefined) return false;
    if (!this.#lost.has(nar.kept.at)) return true;
    return this.canOpen(nar, requestId).then((isOpen) => isOpen ?? true);
  }

  /**
   * Opens the stored file, not its bytes in memory. False if it is missing or damaged; `undefined`
   * while the store does not answer.
   */
  async canOpen(nar: NarRecord, requestId: string): Promise<boolean | undefined> {
    const { signal } = new AbortController();
    try {
      const file = await this.find(nar, requestId, { signal, fresh: true });
      await file?.stored[Symbol.asyncDispose]();
      return file !== undefined;
    } catch {
      return undefined;
    }
  }

  /** When this process found the kept file of the NAR lost; `undefined`: it did not. */
  lostAtMs({ kept }: NarRecord): number | undefined {
    return kept && this.#lost.get(kept.at);
  }

  /**
   * Says so once each NAR whose file was lost is stored again, by whichever member, or its row is
   * gone. Never rejects.
   */
  async probe(): Promise<void> {
    const sinceMs = this.#deps.nowMs() - REPORTED_FOR_MS;
    for (const [at, lostAtMs] of [...this.#reported.entries()].slice(0, LOOKS_MAX)) {
      const isOld = lostAtMs < sinceMs;
      // A database that does not answer tells nothing.
      if (!isOld && await this.#isLost(at).catch(() => true)) return;
      const isLast = this.#reported.delete(at) && this.#reported.size === 0;
      if (isLast && !isOld) this.#deps.log.event("damaged-nars-stored");
    }
  }

  async #isLost(at: StoredName): Promise<boolean> {
    if (!this.#lost.has(at)) return false;
    const nar = await this.#deps.metadata.findNar(narNameOf(at), { fresh: true });
    return nar !== undefined && (nar.kept === undefined || nar.kept.at === at);
  }

  /** The same as `open`, but throws the Failure of a store that does not answer. */
  async find(
    nar: NarRecord,
    requestId: string,
    options: OpenOptions,
  ): Promise<OpenKeptFile | undefined> {
    const found = await this.#find(nar, requestId, options);
    return found === "wrong" ? undefined : found;
  }

  /** "wrong": the file is there, but cut or changed. `undefined`: it is missing or unreadable. */
  async #find(
    nar: NarRecord,
    requestId: string,
    options: OpenOptions,
  ): Promise<OpenKeptFile | "wrong" | undefined> {
    const { name } = nar;
    let { kept } = nar;
    for (let checks = 0; kept !== undefined && checks < CHECKS_MAX; checks++) {
      const stored = await this.#deps.nars.open(kept.at, options);
      if (stored?.fileSize !== kept.fileSize) {
        await stored?.[Symbol.asyncDispose]();
        const now = await this.#keptNow(name);
        const found = stored?.fileSize ?? "nothing";
        if (now?.at === kept.at) return await this.#damaged(name, kept, { found, requestId });
        kept = now;
        continue;
      }
      if (stored.seal === kept.seal) return this.#found({ kept, stored });
      const content = this.#known.contentOf(kept.at, stored.seal);
      if (content === "right") return this.#found({ kept, stored });
      if (content === "wrong") {
        await stored[Symbol.asyncDispose]();
        return content;
      }
      const checked = await this.#checked({ name, kept, stored, requestId });
      if (checked !== "right") return checked;
    }
    return undefined;
  }

  /**
   * Opens the file as `find` does, reads all of it and compares its hash, whatever its seal says.
   * "wrong": it is cut or changed, and is being removed like every damaged file. `undefined`: it is
   * not here.
   */
  async verify(
    nar: NarRecord,
    requestId: string,
    options: OpenOptions,
  ): Promise<{ readonly content: Content; readonly bytes: number } | undefined> {
    const file = await this.#find(nar, requestId, { ...options, fresh: true });
    if (file === "wrong") return { content: file, bytes: 0 };
    if (file === undefined) return undefined;
    const { kept } = file;
    const isRight = this.#isRight(
      { name: nar.name, ...file, requestId },
      await contentHash(file.stored),
    );
    if (!isRight) await this.#noted(this.#remove(kept));
    return { content: isRight ? "right" : "wrong", bytes: kept.fileSize };
  }

  /** Reads the row anew: another process may have evicted the file, or replaced it. */
  async #keptNow(name: NarName): Promise<KeptFile | undefined> {
    return (await this.#deps.metadata.findNar(name, { fresh: true }))?.kept;
  }

  #found(file: OpenKeptFile): OpenKeptFile {
    if (this.#lost.delete(file.kept.at)) this.#returned(narNameOf(file.kept.at));
    return file;
  }

  /**
   * Notes a missing or cut file. larder removes a cut one. The row of a missing one stays until a
   * new download replaces it: the whole disk may be away for a while.
   */
  async #damaged(
    name: NarName,
    kept: KeptFile,
    { found, requestId }: { readonly found: number | "nothing"; readonly requestId: string },
  ): Promise<"wrong" | undefined> {
    // A download repairs it, or a file that another process left will.
    if (this.#deps.downloads.has(name)) return undefined;
    this.noteLost(kept, { nar: name, expected: kept.fileSize, found, request_id: requestId });
    if (found === "nothing") return undefined;
    await clock.within(this.#noted(this.#remove(kept)), REMOVAL_WAIT_MS);
    return "wrong";
  }

  /** Logs the first finding of a lost file, and later that its NAR is stored again. */
  noteLost({ at }: KeptFile, facts: Facts): void {
    if (this.#lost.has(at)) return;
    this.#lost.set(at, this.#deps.nowMs());
    this.#reported.set(at, this.#deps.nowMs());
    this.#deps.log.event("stored-nar-damaged", facts);
    this.#wasLost(narNameOf(at));
  }

  /** `undefined` for an unreadable file. After "right" the caller opens it again. */
  async #checked(file: UnverifiedFile): Promise<Content | undefined> {
    const { name, kept, stored, requestId } = file;
    const { value, joined } = this.#checks.run(kept.at, () => this.#check(file));
    try {
      if (joined) await stored[Symbol.asyncDispose]();
      return await value;
    } catch (error) {
      this.noteLost(kept, { nar: name, error: messageOf(error), request_id: requestId });
      return undefined;
    }
  }

  async #check(file: UnverifiedFile): Promise<Content> {
    const { kept, stored: { seal, unsettledMs = 0 } } = file;
    // Whatever changes the file after the wait makes another seal than the one of this check.
    if (unsettledMs > 0) await clock.pause(unsettledMs);
    if (this.#isRight(file, await contentHash(file.stored))) {
      void this.#noted(this.#seal(kept.at, seal));
      return "right";
    }
    await clock.within(this.#noted(this.#remove(kept)), REMOVAL_WAIT_MS);
    return "wrong";
  }

  #isRight({ name, kept, stored: { seal }, requestId }: UnverifiedFile, hash: Sha256): boolean {
    const content = hash === kept.fileHash ? "right" : "wrong";
    if (content === "wrong") {
      const facts = { nar: name, expected: kept.fileHash, found: hash };
      this.noteLost(kept, { ...facts, request_id: requestId });
    }
    this.#known.learn(kept.at, seal, content);
    return content === "right";
  }

  #noted(write: Promise<void>): Promise<void> {
    this.#writes.add(write);
    return write.finally(() => this.#writes.delete(write));
  }

  async #remove(kept: KeptFile): Promise<void> {
    const { sweeper, changed, log } = this.#deps;
    try {
      await sweeper.markAndSweep(kept, "lost");
      changed();
    } catch (error) {
      log.event("damaged-nar-not-removed", { nar: kept.at, error: messageOf(error) });
    }
  }

  /** Writes the seal, so that the next process does not hash the file. No request waits for it. */
  async #seal(at: StoredName, seal: Seal): Promise<void> {
    try {
      await this.#deps.metadata.apply([{ kind: "nar-sealed", at, seal }]);
    } catch (error) {
      this.#deps.log.event("seal-not-written", { nar: at, error: messageOf(error) });
    }
  }
}

/**
 * SHA-256 of a whole stored file, which it closes. larder answers requests between the pieces: each
 * takes a quarter of a millisecond. Throws when it cannot be read.
 */
async function contentHash(stored: StoredNar): Promise<Sha256> {
  return sha256FromDigest(await digestOf(stored.read(0, stored.fileSize)));
}

/** Some 10 MB of names and seals. A forgotten file is hashed again. */
const ENTRIES_MAX = 50_000;

/** "right": the bytes are the verified ones. */
type Content = "right" | "wrong";

interface Known {
  readonly seal: Seal;
  readonly content: Content;
}

/** Findings of this process in stored files whose rows lack the seal. */
class KnownFiles {
  readonly #entries = lruOf<StoredName, Known>({ countMax: ENTRIES_MAX });

  learn(at: StoredName, seal: Seal, content: Content): void {
    this.#entries.set(at, { seal, content });
  }

  /** `undefined` for a file that was never hashed, or has changed since. */
  contentOf(at: StoredName, seal: Seal): Content | undefined {
    const known = this.#entries.get(at);
    return known?.seal === seal ? known.content : undefined;
  }
}

/** The time in which another server must open a file. It needs milliseconds. */
const HAND_OVER_MS = 10_000;

export interface StoredAnswerDeps {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
  readonly forms: Pick<NarForms, "answer" | "broke">;
}

/** The answer from the kept file of a NAR, in the compression `to`; `undefined` without one. */
export async function openStored(
  { kept, reads, forms }: StoredAnswerDeps,
  nar: NarRecord,
  { requestId, client }: Requester,
  to: Compression = nar.compression,
): Promise<NarAnswer | undefined> {
  const file = await kept.open(nar, requestId, client);
  if (file === undefined) return undefined;
  const answer = storedAnswer(nar, file, { reads, forms, address: client.peer });
  return forms.answer(answer, nar, formOf(nar, file.kept), to);
}

interface StoredAnswerReader {
  readonly reads: ActiveReads;
  readonly forms: Pick<NarForms, "broke">;
  readonly address: string | undefined;
}

function storedAnswer(
  nar: NarRecord,
  { kept, stored }: OpenKeptFile,
  { reads, forms, address }: StoredAnswerReader,
): NarAnswer {
  const { fileSize } = stored;
  let leave: (() => void) | undefined;
  return {
    cacheResult: "HIT",
    fileSize,
    tag: kept.fileHash,
    whole(options) {
      if (fileSize > STORED_WHOLE_BYTES_MAX) return undefined;
      if (stored.isInMemory) return stored.bytes();
      return options?.savesMemory ? undefined : stored.bytes(options);
    },
    async read(start, end = fileSize, options) {
      const body = stored.read(start, end, options);
      leave = reads.beginSend(nar.name, address);
      return body;
    },
    handOver: stored.isInMemory ? undefined : async () => {
      clock.after(HAND_OVER_MS, reads.begin(nar.name), false);
      // Nobody tells whether the client gets all of it.
      void forms.broke({ ...nar, kept });
      await stored[Symbol.asyncDispose]();
      return kept.at;
    },
    release(isWhole) {
      leave?.();
      if (!isWhole) void forms.broke({ ...nar, kept });
    },
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}
