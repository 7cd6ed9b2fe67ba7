import { Failure, messageOf } from "../../base/failure.ts";
import { isDiskFull } from "../../base/os_error.ts";
import type {
  FormerNameKeeper,
  NarFinder,
  NarinfoFinder,
  NarinfoRow,
} from "../../metadata/metadata_store.ts";
import { narName as plainName, renamedNar, stemOf } from "../../nix/nar_name.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import type { NarReader } from "../../storage/nar_store.ts";
import { asKept, type Signer } from "../narinfo/serve_narinfo.ts";
import { formOf } from "../forms/recompressed.ts";
import type { CacheFolder } from "./cache_folder.ts";

export interface ExportDeps {
  readonly metadata:
    & NarinfoFinder
    & Pick<NarFinder, "findNar">
    & Pick<FormerNameKeeper, "formerNamesOf">;
  readonly nars: NarReader;
  readonly signer: Signer;
  readonly folder: CacheFolder;
}

/** The counts of an export so far. */
export interface ExportProgress {
  readonly pathsDone: number;
  /** Number of paths found so far: references lead to further ones. */
  readonly pathsKnown: number;
  readonly bytes: number;
}

/** A path that is not in the written cache. */
export interface NotExported {
  /** The store path, or its hash where only that is known. */
  readonly name: string;
  readonly problem: string;
}

export interface ExportWatcher {
  readonly progress: (progress: ExportProgress) => void;
  readonly missing: (path: NotExported) => void;
}

/** The longest closure; larger ones are a mistake. */
const PATHS_MAX = 500_000;

/** Writes the stored paths of the closures of `roots`. NARs come before their narinfos. */
export async function exportClosures(
  deps: ExportDeps,
  roots: readonly StorePathHash[],
  watcher: ExportWatcher,
  signal: AbortSignal,
): Promise<ExportProgress> {
  await deps.folder.describe();
  // The loop also visits names that it adds on the way.
  const names = new Map<StorePathHash, string>(roots.map((root) => [root, root]));
  let [pathsDone, bytes] = [0, 0];
  for (const [storePathHash, name] of names) {
    if (signal.aborted) break;
    try {
      const row = await deps.metadata.findNarinfo(storePathHash);
      if (row === undefined) throw new Failure("absent", "it is not stored");
      const { references } = parseNarinfo(row.body);
      for (const reference of references) {
        const hash = hashOfBaseName(reference);
        if (!names.has(hash)) names.set(hash, `/nix/store/${reference}`);
      }
      if (names.size > PATHS_MAX) {
        throw new Failure("broken", `Cannot export over ${PATHS_MAX} paths`);
      }
      bytes += await exportEntry(deps, row, signal);
    } catch (error) {
      if (signal.aborted) break;
      if (isDiskFull(error)) throw error;
      watcher.missing({ name, problem: messageOf(error) });
    }
    watcher.progress({ pathsDone: ++pathsDone, pathsKnown: names.size, bytes });
  }
  return { pathsDone, pathsKnown: names.size, bytes };
}

/** Resolves to the written bytes. */
async function exportEntry(
  { metadata, nars, signer, folder }: ExportDeps,
  row: NarinfoRow,
  signal: AbortSignal,
): Promise<number> {
  const { storePathHash, narName } = row;
  const nar = await metadata.findNar(narName, { fresh: true });
  const kept = nar?.kept;
  const stored = kept && await nars.open(kept.at, { signal });
  if (nar === undefined || kept === undefined || stored === undefined) {
    throw new Failure("absent", "its NAR is not stored; fetch it with larder warm");
  }
  await using file = stored;
  const name = renamedNar(narName, formOf(nar, kept).compression);
  const isExported = folder.hasNar(name, kept.fileSize);
  if (!isExported) {
    await folder.putNar(name, file.read(0, file.fileSize, { signal }), kept.fileHash);
  }
  // Who imports the file can name it by its own hash alone.
  const byHash = stemOf(plainName(kept.fileHash, nar.compression));
  const stems = [stemOf(narName), ...await metadata.formerNamesOf(narName)]
    .filter((stem) => stem !== byHash);
  const names = stems.length === 0 ? undefined : signer.formerNames(nar, stems);
  if (names !== undefined) await folder.putFormerNames(storePathHash, names);
  await folder.putNarinfo(storePathHash, asKept(signer.textOf(row), nar));
  return isExported ? 0 : kept.fileSize;
}
