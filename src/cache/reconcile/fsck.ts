import { createHash } from "node:crypto";
import type { Bytes } from "../../base/bytes.ts";
import { messageOf } from "../../base/failure.ts";
import type {
  DamageFinder,
  KeptFile,
  KeptNar,
  MetadataStore,
  NarRecord,
} from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { narNameOf, type StoredName } from "../../nix/stored_name.ts";
import type { ListedNar, NarStore, StoredNar } from "../../storage/nar_store.ts";
import { formOf } from "../forms/recompressed.ts";
import { checkFile, checkNar, Mismatch } from "../verify/check_nar.ts";
import { measureBytes } from "../verify/measure_nar.ts";
import { findLost, isOrphan } from "./check_difference.ts";
import { compareShard, SHARDS } from "./compare_shard.ts";
import type { Repairer } from "./repairer.ts";

export interface FsckDeps {
  readonly metadata: MetadataStore & DamageFinder;
  readonly nars: NarStore;
  readonly repairer: Pick<Repairer, "repair" | "removeWrong">;
  /** Ends the check with its reason. */
  readonly signal: AbortSignal;
}

export interface FsckOrder {
  /** Reads and decompresses every file, and checks its hashes. */
  readonly verifyContent: boolean;
  readonly repair: boolean;
}

/** A finding of the check. */
export interface FsckProblem {
  readonly kind: "database" | "damaged" | "content" | "stray" | "sums";
  /** The NAR of the finding, if it has one. */
  readonly nar?: NarName;
  /** The stored object of that NAR. */
  readonly at?: StoredName;
  readonly detail: string;
  readonly mended: boolean;
}

/** The progress of a check. */
export interface FsckProgress {
  /** Those that the database counted at the start. */
  readonly filesAll: number;
  readonly files: number;
  readonly bytes: number;
}

export interface FsckWatcher {
  problem(problem: FsckProblem): void;
  progress(progress: FsckProgress): void;
}

/**
 * Compares every file with its row, and the sums with the rows; repairs if `order` says so. It
 * leaves out files that a running server publishes or removes. Resolves to the checked totals.
 * Compares nothing with a damaged database: a repair would remove files whose rows it lost.
 */
export async function fsck(
  deps: FsckDeps,
  order: FsckOrder,
  watcher: FsckWatcher,
): Promise<FsckProgress> {
  const { metadata, nars } = deps;
  const damage = await metadata.damage();
  for (const detail of damage) watcher.problem({ kind: "database", detail, mended: false });
  let [filesAll, files, bytes] = [0, 0, 0];
  const progress = () => ({ filesAll, files, bytes });
  if (damage.length > 0) return progress();
  filesAll = (await metadata.stock()).keptFiles;
  for (const shard of SHARDS) {
    deps.signal.throwIfAborted();
    const there = await Array.fromAsync(nars.list(shard, { sizes: true }));
    const rows = await metadata.keptNars(shard);
    const bad = new Set(await checkShard(deps, { rows, there, order, watcher }));
    for (const row of rows) {
      if (bad.has(row.at)) continue;
      if (order.verifyContent) await checkContent(deps, row, order, watcher);
      files++;
      bytes += row.fileSize;
      watcher.progress(progress());
    }
    watcher.progress(progress());
  }
  await checkSums(deps, order, watcher);
  return progress();
}

interface ShardCheck {
  readonly rows: readonly KeptNar[];
  readonly there: readonly ListedNar[];
  readonly order: FsckOrder;
  readonly watcher: FsckWatcher;
}

/** Resolves to the objects with a problem. */
async function checkShard(
  deps: FsckDeps,
  { rows, there, order: { repair }, watcher }: ShardCheck,
): Promise<readonly StoredName[]> {
  const { lost, orphans } = compareShard(rows, there);
  const suspects = [
    ...lost.map((at) => ({ kind: "damaged", at, lost: [at], orphans: [] } as const)),
    ...orphans.map((at) => ({ kind: "stray", at, lost: [], orphans: [at] } as const)),
  ];
  const bad: StoredName[] = [];
  for (const { kind, at, ...difference } of suspects) {
    const finding = await checkAgain(deps, kind, at);
    if (finding === undefined) continue;
    bad.push(at);
    const { detail, isCertain } = finding;
    const mended = repair && isCertain && await deps.repairer.repair(difference, deps) > 0;
    const nar = narNameOf(at);
    const next = kind === "damaged" && isCertain ? await consequence(deps, nar) : "";
    watcher.problem({ kind, nar, at, detail: detail + next, mended });
  }
  return bad;
}

/** A running server may have changed the object since its list or row was read. */
async function checkAgain(
  deps: FsckDeps,
  kind: "damaged" | "stray",
  at: StoredName,
): Promise<{ readonly detail: string; readonly isCertain: boolean } | undefined> {
  try {
    if (kind === "stray") {
      if (!await isOrphan(deps, at, deps)) return undefined;
      return { detail: "a file that no row keeps", isCertain: true };
    }
    const lost = await findLost(deps, at, deps);
    if (lost === undefined) return undefined;
    const { kept, foundBytes } = lost;
    const found = foundBytes === undefined ? "no file" : `${foundBytes} bytes`;
    return { detail: `${found} where there should be ${kept.fileSize} bytes`, isCertain: true };
  } catch (error) {
    deps.signal.throwIfAborted();
    // An unreadable file may be right: it stays.
    return { detail: messageOf(error), isCertain: false };
  }
}

/** What follows for clients: a lost file is an evicted one. */
async function consequence(
  { metadata }: Pick<FsckDeps, "metadata">,
  nar: NarName,
): Promise<string> {
  const paths = await metadata.narinfosOf(nar);
  if (paths.length === 0) return "";
  const sources = (await metadata.sourcesOf(nar)).map(({ upstream }) => upstream);
  return sources.length === 0
    ? `; no upstream had it, so ${paths.join(", ")} is 404 until somebody pushes it again`
    : `; larder asks its upstreams for ${paths.join(", ")} again: ${sources.join(", ")} had it`;
}

async function checkContent(
  { metadata, nars, repairer, signal }: FsckDeps,
  row: KeptNar,
  { repair }: FsckOrder,
  watcher: FsckWatcher,
): Promise<void> {
  const { name: nar, at } = row;
  try {
    const record = await metadata.findNar(nar);
    await using stored = await nars.open(at, { signal });
    if (record?.kept?.at !== at || stored === undefined) return;
    const detail = await wrongContent(record, row, stored);
    if (detail === undefined) return;
    if (repair) await repairer.removeWrong(row);
    const next = await consequence({ metadata }, nar);
    watcher.problem({ kind: "content", nar, at, detail: detail + next, mended: repair });
  } catch (error) {
    // An unreadable file may be right: it stays.
    watcher.problem({ kind: "content", nar, at, detail: messageOf(error), mended: false });
  }
}

async function checkSums(
  { metadata }: FsckDeps,
  { repair }: FsckOrder,
  watcher: FsckWatcher,
): Promise<void> {
  const right = repair ? await metadata.recount() : await metadata.areSumsRight();
  if (right) return;
  const detail = "the sums of the stored files are not those of the rows";
  watcher.problem({ kind: "sums", detail, mended: repair });
}

/** The damage in the bytes of a stored NAR file; `undefined` for none. Reads all of it. */
async function wrongContent(
  nar: NarRecord,
  kept: KeptFile,
  stored: StoredNar,
): Promise<string | undefined> {
  const hash = createHash("sha256");
  const hashing = new TransformStream<Bytes, Bytes>({
    transform(chunk, controller) {
      hash.update(chunk);
      controller.enqueue(chunk);
    },
  });
  const { narSize } = nar;
  const { compression } = formOf(nar, kept);
  const bytes = stored.read(0, stored.fileSize).pipeThrough(hashing);
  const measure = await measureBytes(bytes, { compression, narSizeMax: narSize });
  try {
    checkNar(nar, measure);
    const fileHash = sha256FromDigest(hash.digest());
    checkFile({ ...nar, ...kept, compression }, { fileHash, fileSize: stored.fileSize });
  } catch (error) {
    if (error instanceof Mismatch) return error.message;
    throw error;
  }
  return undefined;
}
