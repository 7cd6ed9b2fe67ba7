import { messageOf } from "../../base/failure.ts";
import type { KeptNar, MetadataStore } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { NarStore } from "../../storage/nar_store.ts";
import { compareShard, type NarOnDisk } from "./compare_shard.ts";
import type { Mender } from "./mender.ts";
import { wrongContent } from "./wrong_content.ts";

export interface FsckDeps {
  readonly shards: readonly string[];
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** The files of a shard, with their sizes. */
  readonly listShard: (shard: string) => readonly NarOnDisk[];
  /** What is wrong with the database file itself. */
  readonly damage: () => readonly string[];
  readonly mender: Pick<Mender, "mend" | "condemn">;
}

export interface FsckOrder {
  /** Read every file, and decompress it, to see that its hashes are right. */
  readonly verifyContent: boolean;
  readonly repair: boolean;
}

/** Something that is wrong. */
export interface FsckProblem {
  readonly kind: "database" | "damaged" | "content" | "stray" | "sums";
  /** The NAR file, where it is about one. */
  readonly nar?: NarName;
  readonly detail: string;
  readonly mended: boolean;
}

/** How far a check is, and what it found. */
export interface FsckProgress {
  readonly shardsDone: number;
  readonly shardsAll: number;
  readonly files: number;
  readonly bytes: number;
}

export interface FsckWatcher {
  problem(problem: FsckProblem): void;
  progress(progress: FsckProgress): void;
}

/**
 * Holds every file against its row, and the sums against the rows; mends if asked to. What a
 * server that runs meanwhile has under way is not looked at. Resolves to what was looked at.
 */
export async function fsck(
  deps: FsckDeps,
  order: FsckOrder,
  watcher: FsckWatcher,
): Promise<FsckProgress> {
  const { shards, metadata, listShard, damage } = deps;
  for (const detail of damage()) watcher.problem({ kind: "database", detail, mended: false });
  let [files, bytes, shardsDone] = [0, 0, 0];
  const progress = () => ({ shardsDone, shardsAll: shards.length, files, bytes });
  for (const shard of shards) {
    const there = listShard(shard);
    const rows = await metadata.keptNars(shard);
    const bad = new Set(await checkShard(deps, { rows, there, order, watcher }));
    for (const row of rows) {
      if (bad.has(row.name)) continue;
      if (order.verifyContent) await checkContent(deps, row, order, watcher);
      files++;
      bytes += row.fileSize;
      watcher.progress(progress());
    }
    shardsDone++;
    watcher.progress(progress());
  }
  await checkSums(deps, order, watcher);
  return progress();
}

interface ShardCheck {
  readonly rows: readonly KeptNar[];
  readonly there: readonly NarOnDisk[];
  readonly order: FsckOrder;
  readonly watcher: FsckWatcher;
}

/** Resolves to the names that something is wrong with. */
async function checkShard(
  { metadata, mender }: FsckDeps,
  { rows, there, order: { repair }, watcher }: ShardCheck,
): Promise<readonly NarName[]> {
  const { lost, stray } = compareShard(rows, there);
  if (lost.length + stray.length === 0) return [];
  const underWay = new Set((await metadata.pendingFiles()).map(({ narName }) => narName));
  const sizes = new Map(there.map(({ name, fileSize }) => [name, fileSize]));
  const expected = new Map(rows.map(({ name, fileSize }) => [name, fileSize]));
  for (const nar of lost) {
    if (underWay.has(nar)) continue;
    const found = sizes.has(nar) ? `${sizes.get(nar)} bytes` : "no file";
    const detail = `${found} where there should be ${expected.get(nar)} bytes`;
    const mended = repair && await mender.mend({ lost: [nar], stray: [] }) > 0;
    watcher.problem({ kind: "damaged", nar, detail, mended });
  }
  for (const nar of stray) {
    if (underWay.has(nar)) continue;
    const mended = repair && await mender.mend({ lost: [], stray: [nar] }) > 0;
    watcher.problem({ kind: "stray", nar, detail: "a file that no row keeps", mended });
  }
  return lost;
}

async function checkContent(
  { metadata, nars, mender }: FsckDeps,
  row: KeptNar,
  { repair }: FsckOrder,
  watcher: FsckWatcher,
): Promise<void> {
  const { name: nar } = row;
  try {
    const record = await metadata.findNar(nar);
    using stored = await nars.open(nar);
    if (record?.kept === undefined || stored === undefined) return;
    const detail = await wrongContent(record, row, stored);
    if (detail === undefined) return;
    if (repair) await mender.condemn(nar);
    watcher.problem({ kind: "content", nar, detail, mended: repair });
  } catch (error) {
    // A file that cannot be read is not known to be wrong: it stays.
    watcher.problem({ kind: "content", nar, detail: messageOf(error), mended: false });
  }
}

async function checkSums(
  { metadata }: FsckDeps,
  { repair }: FsckOrder,
  watcher: FsckWatcher,
): Promise<void> {
  const right = repair ? await metadata.recount() : await metadata.areSumsRight();
  if (right) return;
  const detail = "the sums of what is kept are not those of the rows";
  watcher.problem({ kind: "sums", detail, mended: repair });
}
