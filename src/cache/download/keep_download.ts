import { Failure } from "../../base/failure.ts";
import type { ChangeWriter, KeptFile, NarRow } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import { newStoredName } from "../../nix/stored_name.ts";
import type { NarWriter } from "../../storage/nar_store.ts";
import { hasKnownFileHash } from "../nar/nar_naming.ts";
import { checkFile, checkNar } from "../verify/check_nar.ts";
import type { Download } from "./download.ts";
import type { FetchEnd } from "../fetch/nar_fetcher.ts";
import type { Transfer } from "./transfer.ts";

export interface KeepDownloadDeps {
  readonly metadata: ChangeWriter;
  readonly nars: NarWriter;
  readonly nowMs: () => number;
  /** This process, in the row of a pending file. */
  readonly owner: string;
}

/**
 * Checks the file hash, releases the file to readers, checks the NAR hash, publishes, writes the
 * row. Throws a Mismatch for wrong bytes. Where bytes may be missing, the download is still
 * receiving then, and none were released.
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

/** Writes intent, object and row in this order: the next start settles what a crash leaves. */
async function publish(
  { nars, metadata, nowMs, owner }: KeepDownloadDeps,
  { name, file: { path } }: Download,
  measured: Pick<KeptFile, "fileHash" | "fileSize">,
): Promise<void> {
  const at = newStoredName(name);
  await metadata.apply([{ kind: "nar-publishing", at, owner }]);
  try {
    const seal = await nars.put(at, path);
    await metadata.apply([{ kind: "nar-kept", file: { at, seal, ...measured }, atMs: nowMs() }]);
  } catch (error) {
    // Without a row the accounts would not count it.
    await nars.remove(at);
    await metadata.apply([{ kind: "nar-gone", at }]);
    throw error;
  }
}
