import { createHash } from "node:crypto";
import { Failure } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import type { ChangeWriter } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import { narName } from "../../nix/nar_name.ts";
import { newStoredName } from "../../nix/stored_name.ts";
import { clock, files } from "../../runtime/current.ts";
import type { NarReader, NarWriter } from "../../storage/nar_store.ts";
import { makePartialFile } from "../../storage/spool.ts";

/** What a NAR file needs on its way into the storage. */
export interface TrialDeps {
  readonly metadata: ChangeWriter;
  readonly nars: NarReader & NarWriter;
  /** This member's folder in the spool. */
  readonly folder: string;
}

/** The longest wait for the storage to open a file. */
const ANSWER_MAX_MS = 4_000;

const TRIAL = new TextEncoder().encode("larder tries whether it can store a NAR file.\n");
const TRIAL_NAME = narName(
  sha256FromDigest(createHash("sha256").update(TRIAL).digest()),
  "none",
);

/**
 * Takes a small file the way of a NAR file: spool, storage, database. Then removes it. Throws where
 * one of them fails, and where the disk of the spool has no room for a file of `bytes`.
 */
export async function tryStoring(
  { metadata, nars, folder }: TrialDeps,
  bytes: number,
): Promise<void> {
  using deadline = clock.deadline(ANSWER_MAX_MS);
  await checkRoom(folder, bytes);
  const at = newStoredName(TRIAL_NAME);
  const path = makePartialFile(folder, "trial.");
  try {
    checkLength(path, bytes);
    await files.writeTextFile(path, new TextDecoder().decode(TRIAL));
    await nars.put(at, path);
    await using stored = await nars.open(at, { signal: deadline.signal });
    if (stored?.fileSize !== TRIAL.length) {
      throw new Failure("unavailable", "Cannot read back what the storage took");
    }
  } finally {
    removeIfPresent(path);
    await nars.remove(at);
  }
  // A transaction that changes nothing: a locked database refuses it.
  await metadata.apply([{ kind: "nar-gone", at }]);
}

/** A disk may limit the length of a file. A hole up to there takes no room. */
function checkLength(path: string, bytes: number): void {
  if (bytes === 0) return;
  using file = files.openSync(path, { write: true });
  file.seekSync(bytes - 1, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array(1));
}

async function checkRoom(folder: string, bytes: number): Promise<void> {
  // Without the permission to ask, the trial itself must do.
  const room = await files.room(folder).catch(() => undefined);
  if (room === undefined || room.freeBytes >= bytes) return;
  throw new Failure("unavailable", `Cannot store ${bytes} bytes: ${room.freeBytes} are free`);
}
