import { Failure } from "../../base/failure.ts";
import type { ChangeWriter, KeptFile, NarRow } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { NarWriter } from "../../storage/nar_store.ts";
import type { KnownFiles } from "../kept/known_files.ts";
import { hasKnownFileHash } from "../nar_naming.ts";
import { checkFile, checkNar } from "../verify/check_nar.ts";
import type { Download } from "./download.ts";
import type { FetchEnd } from "../fetch/nar_fetcher.ts";
import type { Transfer } from "./transfer.ts";

export interface KeepDownloadDeps {
  readonly metadata: ChangeWriter;
  readonly nars: NarWriter;
  /** Told of each file that is kept: its bytes were seen. */
  readonly known: Pick<KnownFiles, "learn">;
  readonly nowMs: () => number;
  /** Names this process in the row of a file on its way. */
  readonly owner: string;
  /** Resolves when no eviction is about to remove files that it chose before. */
  readonly removalsOver: () => Promise<void>;
}

/**
 * Checks the file hash, lets the readers have the file, checks the NAR hash, publishes, writes
 * the row. Throws a Mismatch for wrong bytes. Where they may be wrong because some are missing,
 * nothing was let go by then and the download is still receiving.
 */
export async function keepDownload(
  deps: KeepDownloadDeps,
  download: Download,
  nar: NarRow,
  received: { readonly transfer: Pick<Transfer, "measure" | "judged">; readonly end: FetchEnd },
): Promise<void> {
  const { transfer, end } = received;
  const { fileSize, digest } = end;
  const fileHash = sha256FromDigest(digest);
  checkFile(nar, { fileHash, fileSize });
  const now = nar.compression === "none" || (end.maybeShort && !hasKnownFileHash(nar));
  const measured = now ? await transfer.measure(end) : undefined;
  if (measured !== undefined) checkNar(nar, measured);
  const released = measured !== undefined || hasKnownFileHash(nar);
  download.advance({ type: "end", fileSize, released });
  if (download.state.state === "failed") throw new Failure("corrupt", download.state.reason);
  if (measured === undefined) checkNar(nar, await transfer.measure(end));
  transfer.judged();
  download.advance({ type: "verified" });
  await publish(deps, download, { fileHash, fileSize });
  download.advance({ type: "kept" });
}

/**
 * Intent, file, row: a crash in between leaves what the next start finds and settles. Before it,
 * removals that began earlier end: the last thing they do is to forget such an intent.
 */
async function publish(
  { nars, known, metadata, nowMs, owner, removalsOver }: KeepDownloadDeps,
  { name: narName, file: { path } }: Download,
  file: KeptFile,
): Promise<void> {
  await removalsOver();
  await metadata.apply([{ kind: "nar-publishing", narName, owner }]);
  known.learn(narName, await nars.publish(narName, path), "right");
  try {
    await metadata.apply([{ kind: "nar-kept", narName, file, atMs: nowMs() }]);
  } catch (error) {
    // Without its row it would not be counted.
    await nars.remove(narName);
    throw error;
  }
}
