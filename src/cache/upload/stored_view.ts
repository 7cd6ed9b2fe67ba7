import type { DocumentKeeper, NarFinder, NarinfoFinder } from "../../metadata/metadata_store.ts";
import type { DocumentName } from "../../nix/document_name.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { keptDocument, type SentDocument } from "../documents/document_answer.ts";
import { openStored, type StoredAnswerDeps } from "../kept/kept_nars.ts";
import type { NarAnswer, Requester } from "../nar/nar_answer.ts";
import type { Signer } from "../narinfo/serve_narinfo.ts";
import { ownNames } from "./nar_uploads.ts";
import type { StoredEntries } from "./narinfo_uploads.ts";

export interface StoredViewDeps {
  readonly metadata:
    & NarinfoFinder
    & Pick<NarFinder, "findNar">
    & Pick<DocumentKeeper, "findDocument" | "documentPiece">;
  readonly signer: Signer;
  readonly entries: StoredEntries;
  readonly forms: StoredAnswerDeps["forms"];
}

/**
 * View of the stored entries alone, without the upstreams. A client that pushes skips each entry
 * that it finds, so each read is a use.
 */
export class StoredView {
  readonly #deps: StoredViewDeps;

  constructor(deps: StoredViewDeps) {
    this.#deps = deps;
  }

  /** The text of a narinfo whose NAR file is here, too. */
  async narinfo(
    storePathHash: StorePathHash,
    requester: Requester,
  ): Promise<string | undefined> {
    const { metadata, signer, entries: { touches } } = this.#deps;
    const row = await metadata.findNarinfo(storePathHash);
    const nar = row && await this.nar(row.narName, requester);
    if (row === undefined || nar === undefined) return undefined;
    await nar[Symbol.asyncDispose]();
    touches.narinfo(storePathHash);
    return signer.textOf(row);
  }

  async nar(narName: NarName, requester: Requester): Promise<NarAnswer | undefined> {
    const { metadata, entries, forms } = this.#deps;
    for (const name of ownNames(narName)) {
      const nar = await metadata.findNar(name);
      const answer = nar && await openStored({ ...entries, forms }, nar, requester);
      if (answer === undefined) continue;
      entries.touches.nar(name);
      return answer;
    }
    return undefined;
  }

  async document({ path }: DocumentName): Promise<SentDocument | undefined> {
    const { metadata, entries: { touches } } = this.#deps;
    const row = await metadata.findDocument(path);
    if (row === undefined) return undefined;
    touches.document(path);
    return await keptDocument(metadata, row);
  }
}
