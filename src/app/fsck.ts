import {
  fsck,
  type FsckOrder,
  type FsckProgress,
  type FsckWatcher,
} from "../cache/reconcile/fsck.ts";
import { Repairer } from "../cache/reconcile/repairer.ts";
import type { Settings } from "../config/options.ts";
import { Sweeper } from "../space/sweeper.ts";
import { SILENT } from "../telemetry/logger.ts";
import { openPresentBackEnds } from "./back_ends/back_ends.ts";
import { storePlaces } from "./folders.ts";

/** The owner of the removals that a check marks. */
const OWNER = "fsck";

/** Checks the storage of the settings. Throws a Failure if there is none. */
export async function fsckStorage(
  settings: Settings,
  order: FsckOrder & { readonly adopt: boolean },
  watcher: FsckWatcher,
): Promise<FsckProgress> {
  await using backEnds = await openPresentBackEnds(storePlaces(settings), {
    adopts: order.adopt,
  });
  const { metadata, nars } = backEnds;
  const sweeper = new Sweeper({ metadata, nars, owner: OWNER, log: SILENT });
  const repairer = new Repairer({ stores: { metadata, nars }, sweeper, owner: OWNER, log: SILENT });
  const { signal } = new AbortController();
  return await fsck({ metadata, nars, repairer, signal }, order, watcher);
}
