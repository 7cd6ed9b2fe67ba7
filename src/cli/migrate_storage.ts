import type { StoragePlace } from "../app/folders.ts";
import type { StorageMoved } from "../app/migrate_storage.ts";
import { EXIT } from "../base/exit_codes.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import type { NarCopyProgress } from "../cache/migrate/copy_nars.ts";
import { ConfigError } from "../config/config_error.ts";
import { bucketName } from "../config/kinds/plain.ts";
import { reportFailures } from "./client/each.ts";
import { StatusLine } from "./client/status_line.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_settings.ts";
import type { ServerArguments } from "./server_arguments.ts";

const BUCKET_REGEXP = /^s3:\/\/(.+?)\/?$/;

/** `larder migrate storage`. */
export async function migrateStorageCommand(
  { own: operands, server }: ServerArguments,
  process: CommandProcess,
): Promise<number> {
  const [from, to] = placesOf(operands);
  const args = [...server, ...impliedBy([from, to], server)];
  const { settings } = await serverSettings(args, process);
  // Loaded here, so that help and errors are fast.
  const { migrateStorage } = await import("../app/migrate_storage.ts");
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  const { signal } = stopping;
  let copy: { readonly progress: NarCopyProgress } | undefined;
  let moved: StorageMoved;
  try {
    using _status = new StatusLine(process, () => progressLine(copy?.progress));
    const started = (one: typeof copy) => copy = one;
    moved = await migrateStorage(settings, { from, to, signal, started });
  } catch (error) {
    if (!signal.aborted) throw error;
    process.writeError("larder: stopped; run it again to go on\n");
    return EXIT.failed;
  }
  const failures = moved.notCopied.map(({ at, reason }) => ({ name: at, reason }));
  const status = reportFailures(failures, "not copied:", process.writeError);
  process.writeOut(reportOf(moved));
  return moved.isSame ? status : EXIT.failed;
}

function placesOf(operands: readonly string[]): readonly [StoragePlace, StoragePlace] {
  const [from, to] = operands;
  if (from === undefined || to === undefined || operands.length > 2) {
    throw new ConfigError(["migrate storage: expected FROM and TO"]);
  }
  const places = [placeOf(from), placeOf(to)] as const;
  if (JSON.stringify(places[0]) !== JSON.stringify(places[1])) return places;
  throw new ConfigError([`migrate storage: got ${JSON.stringify(to)} twice, expected two places`]);
}

function placeOf(given: string): StoragePlace {
  const bucket = BUCKET_REGEXP.exec(given)?.[1];
  if (bucket !== undefined && isBucketName(bucket)) return { kind: "s3", bucket };
  if (given !== "" && !given.includes("://")) {
    return { kind: "local", folder: given.replace(/(?<=.)\/+$/, "") };
  }
  const got = JSON.stringify(given);
  throw new ConfigError([`migrate storage: got ${got}, expected a folder or s3://BUCKET`]);
}

function isBucketName(given: string): boolean {
  try {
    return bucketName.parse(given) === given;
  } catch {
    return false;
  }
}

/** The places as settings, unless others are given. The database is in the folder by default. */
function impliedBy(places: readonly StoragePlace[], server: readonly string[]): readonly string[] {
  const args = places.map((place) =>
    place.kind === "local"
      ? `--cache-storage-local=${place.folder}`
      : `--cache-storage-s3-bucket=${place.bucket}`
  );
  const isGiven = (flag: string) => server.some((arg) => arg.split("=")[0] === flag);
  const flags = new Map(args.toReversed().map((arg) => [arg.split("=")[0] ?? "", arg]));
  return [...flags].filter(([flag]) => !isGiven(flag)).map(([, arg]) => arg);
}

function progressLine(progress: NarCopyProgress | undefined): string {
  if (progress === undefined) return "opening the storages";
  const { compared, copied, copiedBytes } = progress;
  const size = formatBytes(copiedBytes);
  return `${counted(compared, "NAR file")} compared, ${copied} copied (${size})`;
}

function reportOf(
  { copied, copiedBytes, compared, notCopied, isSame, isUsed }: StorageMoved,
): string {
  const left = notCopied.length === 0 ? "both storages are the same" : "the others are the same";
  const result = isSame ? left : "the old one goes on changing";
  const done = `${counted(copied, "NAR file")} copied (${formatBytes(copiedBytes)})`;
  const next = isUsed
    ? "A larder uses the old one: stop it, run this once more, then start it on the new one."
    : "Start larder on the new one.";
  return `${done}, ${compared} compared: ${result}.\n${isSame ? `${next}\n` : ""}`;
}
