import { Failure } from "../base/failure.ts";
import type { CopyProgress } from "../metadata/copy_metadata.ts";
import { MetadataCopy } from "../metadata/copy_metadata.ts";
import { SILENT } from "../telemetry/logger.ts";
import { type DatabasePlace, openMetadata, readMetadata } from "./back_ends/metadata_back_end.ts";

/** A server that changes rows all the time never lets a pass find nothing. */
const PASSES_MAX = 5;

export interface DatabaseMove {
  readonly from: DatabasePlace;
  readonly to: DatabasePlace;
  readonly signal: AbortSignal;
  /** Called with the copy, whose progress goes on. */
  readonly started: (copy: { readonly progress: CopyProgress }) => void;
}

export interface DatabaseMoved {
  /** Rows that all passes have copied. */
  readonly copied: number;
  /** Rows that the last pass compared. */
  readonly looked: number;
  /** True if the last pass found nothing to copy. */
  readonly isSame: boolean;
}

/** Copies a database, until a pass finds both the same. Throws a Failure for unusable ones. */
export async function migrateDatabase(order: DatabaseMove): Promise<DatabaseMoved> {
  const { from, to, signal, started } = order;
  await using opened = new AsyncDisposableStack();
  const source = opened.use(await readMetadata(from, SILENT));
  const target = opened.use(await openMetadata(to, SILENT));
  const id = await source.storageId();
  if (id !== undefined && await target.claimStorageId(id) !== id) {
    const hint = "give an empty database";
    const reason = "the new one belongs to other NAR files";
    throw new Failure("broken", `Cannot migrate database: ${reason}; ${hint}`);
  }
  const copy = new MetadataCopy({ from: source, to: target });
  started(copy);
  let copied = 0;
  let last: CopyProgress = { looked: 0, copied: 0 };
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    last = await copy.pass(signal);
    copied += last.copied;
    if (last.copied === 0) break;
  }
  const key = await source.keys?.signingKey();
  if (key !== undefined) await target.keys?.adoptSigningKey(key);
  if (!await target.areSumsRight()) {
    throw new Failure("broken", "Cannot migrate database: the sums of the new one are wrong");
  }
  return { copied, looked: last.looked, isSame: last.copied === 0 };
}
