import { basename, dirname } from "node:path";
import { Failure } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import { withoutUrlSecrets } from "../../base/url_secrets.ts";
import { StorageClaim } from "../../cache/reconcile/storage_claim.ts";
import type { S3Meter } from "../../storage/s3/s3_access.ts";
import { type Logger, SILENT } from "../../telemetry/logger.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import {
  type DatabasePlace,
  type MetadataBackEnd,
  openMetadata,
  readMetadata,
} from "./metadata_back_end.ts";
import { joinMembers, livingMember } from "./members.ts";
import { checkNars, type NarBackEnd, type NarPlace, openNars } from "./nar_back_end.ts";

/** The places of the metadata and of the NAR files. A message to a Worker can hold them. */
export interface StorePlaces {
  readonly database: DatabasePlace;
  readonly nars: NarPlace;
}

/** The two stores as they are, without memory caches or traces. */
export interface BackEnds extends NarBackEnd {
  readonly metadata: MetadataBackEnd;
  readonly claim: StorageClaim;
}

export interface OpenBackEndsOptions {
  /** True: the store of NAR files becomes this database's, whose ever it was. Default: false. */
  readonly adopts?: boolean;
  /**
   * This process joins the members first, so that those that start at once see each other. Default:
   * it is none.
   */
  readonly member?: MemberId;
  /** Follows each operation of S3. Default: it follows none. */
  readonly tracer?: Tracer | undefined;
  /** Counts each operation of S3. Default: nobody does. */
  readonly meter?: S3Meter | undefined;
}

/**
 * Makes a missing database. Throws a Failure that names an unusable one, an unusable bucket, or NAR
 * files of another database. The claim of a bucket that does not answer comes later.
 */
export async function openBackEnds(
  places: StorePlaces,
  log: Logger = SILENT,
  { adopts = false, member, tracer, meter }: OpenBackEndsOptions = {},
): Promise<BackEnds> {
  const answers = await checkNars(places.nars);
  await using opening = new AsyncDisposableStack();
  const metadata = await openMetadata(places.database, log);
  const opened = opening.use(await backEnds(metadata, places, { member, tracer, meter }));
  if (member !== undefined) opening.use(await joinMembers(metadata, member, log));
  if (adopts) await opened.claim.adopt();
  else if (answers) await opened.claim.confirm();
  const resources = opening.move();
  return { ...opened, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** Opens stores for a check. Throws a Failure that names a missing one. */
export async function openPresentBackEnds(
  places: StorePlaces,
  options?: OpenBackEndsOptions,
): Promise<BackEnds> {
  const { database, nars } = places;
  if (database.kind === "sqlite") requireStorage(database.path);
  if (nars.kind === "local") requireStorage(nars.folder);
  const opened = await openBackEnds(places, SILENT, options);
  try {
    await opened.claim.confirm();
    return opened;
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

/** Opens stores that another thread writes. */
export async function readBackEnds(places: StorePlaces): Promise<BackEnds> {
  return await backEnds(await readMetadata(places.database, SILENT), places);
}

interface BackEndsUser {
  readonly member?: MemberId | undefined;
  readonly tracer?: Tracer | undefined;
  readonly meter?: S3Meter | undefined;
}

async function backEnds(
  metadata: MetadataBackEnd,
  places: StorePlaces,
  { member, tracer, meter }: BackEndsUser = {},
): Promise<BackEnds> {
  await using opened = new AsyncDisposableStack();
  opened.use(metadata);
  const narBackEnd = opened.use(await openNars(places.nars, tracer, meter));
  const resources = opened.move();
  const otherMember = () => livingMember(metadata, member);
  const claim = new StorageClaim({ ...narBackEnd, metadata, ...storeNamesOf(places), otherMember });
  return { ...narBackEnd, metadata, claim, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** The names of both stores, for people, and whether they have one folder. */
export function storeNamesOf({ database, nars }: StorePlaces) {
  const isBeside = database.kind === "sqlite" && nars.kind === "local" &&
    dirname(database.path) === dirname(nars.folder);
  const store = nars.kind === "local" ? nars.folder : `S3 bucket ${nars.s3.bucket}`;
  if (isBeside) {
    return { isBeside, names: { store, database: `${basename(database.path)} beside them` } };
  }
  return { isBeside, names: { store, database: databaseName(database) } };
}

/** The name of a database for people, without secrets. */
export function databaseName(database: DatabasePlace): string {
  if (database.kind === "postgres") return withoutUrlSecrets(database.url);
  return `sqlite:${database.path} on ${Deno.hostname()}`;
}

function requireStorage(path: string): void {
  try {
    Deno.statSync(path);
  } catch (error) {
    const hint = "give the storage with --cache-storage-local, or the user who may read it";
    throw new Failure("broken", `Cannot check ${path}: it is unreadable; ${hint}`, {}, error);
  }
}
