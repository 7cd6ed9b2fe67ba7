import { messageOf } from "../../base/failure.ts";
import { NarNameTaken, type NarRecord, type NarRow } from "../../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../../metadata/space_keeper.ts";
import type { FileHash, NarHash, Sha256 } from "../../nix/hash.ts";
import { type NarName, narName as plainName } from "../../nix/nar_name.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Sweeper } from "../../space/sweeper.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { ownNarRowOf } from "../nar/nar_naming.ts";
import { publishNar, type PublishNarDeps } from "../nar/publish_nar.ts";
import type { MeasuredNar } from "./file_measure.ts";

/** How long a NAR without a narinfo waits for it. */
const STAGED_MS = 60 * 60 * 1_000;

export interface StageNarDeps {
  readonly metadata: PublishNarDeps["metadata"];
  readonly nars: PublishNarDeps["nars"];
  readonly nowMs: () => number;
  /** This process. */
  readonly owner: string;
}

/** The file of a NAR, and its measured facts. */
export interface MeasuredFile extends MeasuredNar {
  /** The storage takes it over. */
  readonly path: string;
  /** Its bytes in the ledger; `undefined` without a limit. */
  readonly ledgerBytes: number | undefined;
  readonly fileHash: Sha256;
  readonly fileSize: number;
}

/**
 * Publishes a NAR file before its narinfo, and resolves to its name. It gets a name of its own
 * where another file claims the plain one.
 */
export async function stageNar(deps: StageNarDeps, file: MeasuredFile): Promise<NarName> {
  const { compression, fileHash, fileSize, narHash, narSize } = file;
  const nar: NarRow = {
    name: plainName(fileHash, compression),
    compression,
    narHash: narHash as NarHash,
    narSize,
    fileHash: fileHash as FileHash,
    fileSize,
  };
  try {
    return await stageAs(nar, deps, file);
  } catch (error) {
    if (!(error instanceof NarNameTaken)) throw error;
    return await stageAs(ownNarRowOf(nar), deps, file);
  }
}

async function stageAs(nar: NarRow, deps: StageNarDeps, file: MeasuredFile): Promise<NarName> {
  const { nowMs, metadata } = deps;
  const { name } = nar;
  const known = await metadata.findNar(name, { fresh: true });
  const row = knownOf(known, nar);
  const untilMs = nowMs() + STAGED_MS;
  const { path, fileHash, fileSize, ledgerBytes: reservedBytes } = file;
  const finished = { name, path, fileHash, fileSize, reservedBytes };
  await publishNar(deps, finished, [{ kind: "stage-nar", nar: row, untilMs }]);
  return name;
}

/** The stored row, if it agrees on the NAR and has no other file facts; else `nar`. */
function knownOf(known: NarRecord | undefined, nar: NarRow): NarRow {
  if (known === undefined) return nar;
  const { kept: _, ...row } = known;
  const isSame = row.narHash === nar.narHash && row.narSize === nar.narSize &&
    (row.fileHash ?? nar.fileHash) === nar.fileHash &&
    (row.fileSize ?? nar.fileSize) === nar.fileSize;
  return isSame ? row : nar;
}

interface StagedNarsDeps {
  readonly metadata: Pick<SpaceKeeper, "expireNars">;
  readonly sweeper: Pick<Sweeper, "sweep">;
  readonly reads: Pick<ActiveReads, "names">;
  /** This process, in the marks of files. */
  readonly owner: string;
  /** Called when files were removed. */
  readonly changed: () => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Removes the uploaded NARs whose narinfo has not come in time. Never rejects. */
export async function expireStagedNars(deps: StagedNarsDeps): Promise<void> {
  const { metadata, sweeper, reads, owner, changed, nowMs, log } = deps;
  try {
    const order = { atMs: nowMs(), spared: reads.names(), owner };
    const gone = await sweeper.sweep(await metadata.expireNars(order));
    if (gone.length === 0) return;
    changed();
    for (const { at, fileSize } of gone) {
      log.info("upload expired", { nar: at, file_size: fileSize });
    }
  } catch (error) {
    log.event("expired-uploads-not-removed", { error: messageOf(error) });
  }
}
