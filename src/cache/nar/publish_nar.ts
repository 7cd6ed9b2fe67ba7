import type {
  Change,
  ChangeWriter,
  KeptFile,
  ReplaceCondition,
} from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { newStoredName, type Seal, type StoredName } from "../../nix/stored_name.ts";
import type { NarWriter } from "../../storage/nar_store.ts";

export interface PublishNarDeps {
  readonly metadata: ChangeWriter;
  readonly nars: Pick<NarWriter, "remove"> & {
    /** Like that of a store; resolves to `undefined` where its seal would prove nothing. */
    put(...args: Parameters<NarWriter["put"]>): Promise<Seal | undefined>;
  };
  readonly nowMs: () => number;
  /** This process, in the row of a pending file. */
  readonly owner: string;
}

/** A finished and verified NAR file. */
export interface FinishedNar extends Pick<KeptFile, "fileHash" | "fileSize" | "form"> {
  readonly name: NarName;
  /** The storage takes it over. */
  readonly path: string;
  /** Its bytes in the ledger; `undefined` without a limit. */
  readonly reservedBytes?: number | undefined;
  /** Rejects with Irreplaceable where it does not hold. */
  readonly replaces?: ReplaceCondition;
}

/**
 * Writes intent, object and row in this order: recovery settles the remains of a crash. It writes
 * `first` with the intent.
 */
export async function publishNar(
  deps: PublishNarDeps,
  { name, path, fileHash, fileSize, reservedBytes, form, replaces }: FinishedNar,
  first: readonly Change[] = [],
): Promise<void> {
  const { nars, metadata, nowMs, owner } = deps;
  const at = newStoredName(name);
  await metadata.apply([...first, { kind: "nar-publishing", at, owner }]);
  try {
    const seal = await nars.put(at, path);
    const atMs = nowMs();
    const sealed = seal === undefined ? {} : { seal };
    const formed = form === undefined ? {} : { form };
    const file = { at, ...sealed, fileHash, fileSize, keptAtMs: atMs, ...formed };
    const reserved = reservedBytes === undefined ? {} : { reservedBytes };
    const condition = replaces === undefined ? {} : { replaces };
    await metadata.apply([{ kind: "nar-kept", file, owner, atMs, ...reserved, ...condition }]);
  } catch (error) {
    await takeBack(deps, at, fileSize);
    throw error;
  }
}

/** Never throws: the caller has an error to report. */
async function takeBack(
  { nars, metadata, owner }: PublishNarDeps,
  at: StoredName,
  fileSize: number,
): Promise<void> {
  try {
    // Without a row the accounts would not count it.
    await nars.remove(at);
    await metadata.apply([{ kind: "nar-gone", at }]);
  } catch {
    // The sweeper tries again, and logs why it cannot.
    await metadata.apply([{ kind: "nar-stuck", at, owner, fileSize }]).catch(() => undefined);
  }
}
