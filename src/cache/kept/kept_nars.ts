import { within } from "../../base/deadline.ts";
import { messageOf } from "../../base/failure.ts";
import { SingleFlight } from "../../base/single_flight.ts";
import type { KeptFile, NarRecord } from "../../metadata/metadata_store.ts";
import type { Sha256 } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { NarReader, StoredNar } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Downloads } from "../download/downloads.ts";
import type { Condemn } from "./condemn.ts";
import { contentHash } from "./content_hash.ts";
import type { KnownFiles, Verdict } from "./known_files.ts";

/** A file that is changed while it is looked at, again and again, is as good as none. */
const LOOKS_MAX = 3;

/** For a wrong file to go before another is fetched; later that one replaces it. */
const CONDEMN_WAIT_MS = 500;

export interface KeptNarsDeps {
  readonly nars: NarReader;
  readonly known: KnownFiles;
  readonly condemn: Condemn;
  readonly downloads: Pick<Downloads, "find">;
  readonly log: Logger;
}

/** A file that is open and has the right size, and what its bytes should be. */
interface Look {
  readonly name: NarName;
  readonly kept: KeptFile;
  readonly stored: StoredNar;
  readonly requestId: string;
}

/**
 * The kept NAR files, as long as they are what was verified. One that this process has not seen,
 * or that has been changed since, is hashed before its first byte is sent, whatever its size: a
 * client that got wrong bytes, and then a break, would go on with the right rest behind them.
 */
export class KeptNars {
  readonly #deps: KeptNarsDeps;
  readonly #checks = new SingleFlight<NarName, Verdict>();

  constructor(deps: KeptNarsDeps) {
    this.#deps = deps;
  }

  /** `undefined` of a file that is missing, cut or wrong: it is to be fetched again. */
  async open(nar: NarRecord, requestId: string): Promise<StoredNar | undefined> {
    const { kept, name } = nar;
    if (kept === undefined) return undefined;
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      const stored = await this.#deps.nars.open(name);
      if (stored?.fileSize !== kept.fileSize) return this.#damaged(nar, stored, requestId);
      const verdict = this.#deps.known.verdictOf(name, stored.identity);
      if (verdict === "right") return stored;
      if (verdict === "wrong") return void stored[Symbol.dispose]();
      if (await this.#checked({ name, kept, stored, requestId }) !== "right") return undefined;
    }
    return undefined;
  }

  /** A file that is missing or cut is fetched again: no row goes for it. */
  #damaged(nar: NarRecord, stored: StoredNar | undefined, requestId: string): undefined {
    const found = stored?.fileSize ?? "nothing";
    stored?.[Symbol.dispose]();
    // A download under way is what mends it already.
    if (this.#deps.downloads.find(nar.name) !== undefined) return;
    const facts = { nar: nar.name, expected: nar.kept?.fileSize ?? 0, found };
    this.#deps.log.error("stored nar is damaged", { ...facts, request_id: requestId });
  }

  /** `undefined` when it cannot be read. When it is right it is known to be: look again. */
  async #checked(look: Look): Promise<Verdict | undefined> {
    const { name, stored, requestId } = look;
    const { value, joined } = this.#checks.run(name, () => this.#check(look));
    if (joined) stored[Symbol.dispose]();
    try {
      return await value;
    } catch (error) {
      const facts = { nar: name, error: messageOf(error), request_id: requestId };
      this.#deps.log.error("stored nar is damaged", facts);
      return undefined;
    }
  }

  async #check(look: Look): Promise<Verdict> {
    const { name, stored: { identity } } = look;
    if (this.#isRight(look, await contentHash(look.stored))) return "right";
    await within(this.#deps.condemn(name, identity), CONDEMN_WAIT_MS);
    return "wrong";
  }

  #isRight({ name, kept, stored: { identity }, requestId }: Look, hash: Sha256): boolean {
    const { known, log } = this.#deps;
    const verdict = hash === kept.fileHash ? "right" : "wrong";
    // Of several who read a wrong file at once the first one says it.
    if (verdict === "wrong" && known.verdictOf(name, identity) !== "wrong") {
      const facts = { nar: name, expected: kept.fileHash, found: hash };
      log.error("stored nar is damaged", { ...facts, request_id: requestId });
    }
    known.learn(name, identity, verdict);
    return verdict === "right";
  }
}
