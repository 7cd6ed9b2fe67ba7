import { messageOf } from "../../base/failure.ts";
import { lruOf } from "../../base/lru.ts";
import type { ChangeWriter, NarinfoRow, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import { NEVER_USED_AT_MS } from "../../metadata/metadata_store.ts";
import { fingerprintOf } from "../../nix/fingerprint.ts";
import { formatNarinfo } from "../../nix/narinfo_format.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import { withSignatures } from "../../nix/narinfo_signatures.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import { isSameFile, narUrlOf, sourceOf } from "../nar/nar_naming.ts";

/** Requests in flight; a narinfo beyond them waits until it is served again. */
const AT_ONCE_MAX = 8;

/** Some 10 MB of names. A forgotten one is asked for again. */
const ASKED_MAX = 50_000;

export interface NarinfoRefreshDeps {
  readonly pool: Pick<UpstreamPool, "spare" | "prefetchNarinfo">;
  readonly metadata: ChangeWriter;
  /** How old a served narinfo may be; 0: as old as it is. */
  readonly refreshMs: number;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "debug">;
}

/**
 * Asks upstreams again for narinfos whose NARs are here, in the background, for signatures that came
 * later. Nothing else of a narinfo changes.
 */
export class NarinfoRefresh {
  readonly #deps: NarinfoRefreshDeps;
  readonly #askedAtMs = lruOf<StorePathHash, number>({ countMax: ASKED_MAX });
  readonly #running = new Set<Promise<void>>();

  constructor(deps: NarinfoRefreshDeps) {
    this.#deps = deps;
  }

  /** A client gets the stored narinfo. Returns at once; never rejects. */
  served(row: NarinfoRow, nar: NarRecord, requestId: string): void {
    const { refreshMs, nowMs } = this.#deps;
    const { storePathHash } = row;
    const atMs = nowMs();
    // An upload is no upstream's, and a narinfo without its NAR is asked for before it is served.
    if (refreshMs === 0 || nar.seenAtMs === undefined || nar.kept === undefined) return;
    const askedAtMs = Math.max(nar.seenAtMs, this.#askedAtMs.get(storePathHash) ?? 0);
    if (atMs - askedAtMs <= refreshMs || this.#running.size >= AT_ONCE_MAX) return;
    this.#askedAtMs.set(storePathHash, atMs);
    const running = this.#refresh(row, nar, requestId)
      .catch((error) => {
        this.#deps.log.debug("narinfo not refreshed", { error: messageOf(error) });
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when no request is in flight. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #refresh(row: NarinfoRow, nar: NarRecord, requestId: string): Promise<void> {
    const { pool, metadata, nowMs } = this.#deps;
    const { storePathHash, ownSignature } = row;
    const { kept, ...facts } = nar;
    const spare = pool.spare();
    if (spare === "later" || kept === undefined) return void this.#askedAtMs.delete(storePathHash);
    const answer = await pool.prefetchNarinfo(storePathHash, spare, requestId);
    if (answer.kind !== "found") return;
    const stored = parseNarinfo(row.body);
    const offers = [answer.best, ...answer.others];
    const same = offers.filter(({ narinfo }) => fingerprintOf(narinfo) === fingerprintOf(stored));
    if (same.length === 0) return;
    const narinfo = same.reduce((all, offer) => withSignatures(all, offer.narinfo), stored);
    const url = narUrlOf(row.narName);
    const body = formatNarinfo(narinfo, { url, withoutSignature: ownSignature?.text });
    const seen: NarRow = { ...facts, seenAtMs: nowMs() };
    await metadata.apply([{
      kind: "put-narinfo",
      row: { ...row, body },
      references: [...new Set(narinfo.references.map(hashOfBaseName))],
      nar: seen,
      sources: same.filter((offer) => isSameFile(offer.narinfo, nar)).map(sourceOf),
      atMs: NEVER_USED_AT_MS,
      // An upload or a new download may have come meanwhile.
      onlyIf: { body: row.body, at: kept.at },
    }]);
  }
}
