import type { KeptFile, NarFinder } from "../../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../../metadata/space_keeper.ts";
import { narNameOf, type StoredName } from "../../nix/stored_name.ts";
import type { NarReader, OpenOptions } from "../../storage/nar_store.ts";

export interface DifferenceStores {
  readonly metadata: Pick<NarFinder, "findNar"> & Pick<SpaceKeeper, "pendingFiles">;
  readonly nars: NarReader;
}

/** A kept object that is missing, or has another size. */
export interface LostObject {
  readonly kept: KeptFile;
  /** `undefined` for a missing one. */
  readonly foundBytes: number | undefined;
}

/**
 * Checks again an object that an earlier row keeps. `undefined`: it is whole, or was removed
 * meanwhile. Throws if it is unreadable.
 */
export async function findLost(
  { metadata, nars }: DifferenceStores,
  at: StoredName,
  options: OpenOptions,
): Promise<LostObject | undefined> {
  await using stored = await nars.open(at, options);
  const foundBytes = stored?.fileSize;
  // After the object, which outlives its row.
  const kept = await keptAt(metadata, at);
  return kept === undefined || kept.fileSize === foundBytes ? undefined : { kept, foundBytes };
}

/**
 * Checks again an object that was listed without a row. False while a process publishes or removes
 * it. An orphan stays one.
 */
export async function isOrphan(
  { metadata, nars }: DifferenceStores,
  at: StoredName,
  options: OpenOptions,
): Promise<boolean> {
  const isPending = async () => (await metadata.pendingFiles()).some((file) => file.at === at);
  // In the order of an object's life: its intent, its row, its mark, its removal. One that passes
  // from each to the next between two of these reads is gone by the last.
  if (await isPending()) return false;
  if (await keptAt(metadata, at) !== undefined) return false;
  if (await isPending()) return false;
  await using stored = await nars.open(at, options);
  return stored !== undefined;
}

/** The row of the NAR, if it keeps this object. */
async function keptAt(
  metadata: Pick<NarFinder, "findNar">,
  at: StoredName,
): Promise<KeptFile | undefined> {
  const nar = await metadata.findNar(narNameOf(at), { fresh: true });
  return nar?.kept?.at === at ? nar.kept : undefined;
}
