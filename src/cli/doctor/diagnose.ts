import { probeUpstreams, type UpstreamProbe } from "../../app/doctor/probe_upstreams.ts";
import { type DatabaseState, readDatabase } from "../../app/doctor/read_database.ts";
import { storageFolder, storePlaces } from "../../app/folders.ts";
import { isKeyShared, keyFileOf } from "../../app/key_files.ts";
import { messageOf } from "../../base/failure.ts";
import { withoutUrlSecrets } from "../../base/url_secrets.ts";
import type { DiskRoom } from "../../runtime/files.ts";
import type { Settings } from "../../config/options.ts";
import { parsePublicKey } from "../../nix/signature.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock, files } from "../../runtime/current.ts";
import { checkBucketOf, checkDatabase, checkOwner, checkRedis } from "./back_end_checks.ts";
import { checkCertificateOf } from "./certificate_check.ts";
import { checkClientHere } from "./client_check.ts";
import { checkClock } from "./clock_check.ts";
import { checkDisk, checkLimit } from "./disk_check.ts";
import { type Finding, findingsOn } from "./finding.ts";
import { checkKey } from "./key_check.ts";
import type { NixClientInputs } from "./nix_client.ts";
import { checkPermissions } from "./permission_check.ts";
import { checkProxyHeaders } from "./proxy_check.ts";
import { checkPull } from "./pull_check.ts";
import { checkServer, lookAtServer, type ServerState, type ServerTarget } from "./server_check.ts";
import { keyFacts, newestTimeIn, placesOf } from "./storage_facts.ts";
import { checkUpstreams } from "./upstream_check.ts";

export interface DiagnosisOrder {
  readonly settings: Settings;
  /** `undefined`: the address of the server is unknown. */
  readonly target: ServerTarget | undefined;
  /** Store paths to pull, and to compare signatures with. */
  readonly paths: readonly StorePathHash[];
  readonly host: NixClientInputs;
}

/** A check without a result counts as not checked. */
const CHECK_LIMIT_MS = 30_000;

/** The upstreams do not wait longer for paths to try. */
const SAMPLES_LIMIT_MS = 5_000;

/** A file for the pull takes a moment. */
const PULL_BYTES_MAX = 8 << 20;

/** Runs all checks side by side, and yields their findings in order. Changes nothing. */
export async function* diagnose(order: DiagnosisOrder): AsyncGenerator<Finding> {
  const { settings, target } = order;
  using reads = startFacts(order);
  const { server, database, room, probes } = reads;
  const places = storePlaces(settings);
  const checks: readonly (readonly [subject: string, Promise<readonly Finding[]>])[] = [
    ["server", server.then((state) => checkServer(target, state))],
    ["clock", clockFindings(settings, reads)],
    ["disk", room.then((found) => checkDisk(storageFolder(settings), found))],
    ["bucket", checkBucketOf(places)],
    ["nar files", database.then((state) => checkOwner(places, state))],
    ["size limit", limitFindings(settings, reads)],
    ["permissions", Promise.resolve().then(() => checkPermissions(placesOf(settings)))],
    ["database", database.then((state) => checkDatabase(placeText(settings), state))],
    ["redis", checkRedis(settings)],
    ["signing key", keyFindings(settings, reads)],
    ["certificate", checkCertificateOf(settings, clock.wallMs())],
    ["upstreams", upstreamFindings(settings, probes)],
    ["proxy headers", server.then((state) => proxyFindings(order, state))],
    ["pull", pullFindings(order, reads)],
    ["nix.conf", server.then((state) => checkClientHere(order, state))],
  ];
  const limited = checks.map(([subject, check]) => settled(subject, check));
  for (const findings of limited) yield* await findings;
}

/** Facts that several checks need, each read once. */
interface SharedFacts {
  readonly server: Promise<ServerState>;
  readonly database: Promise<DatabaseState>;
  readonly room: Promise<DiskRoom | undefined>;
  readonly probes: Promise<readonly UpstreamProbe[]>;
}

function startFacts({ settings, target, paths }: DiagnosisOrder): SharedFacts & Disposable {
  const ending = new AbortController();
  const server = lookAtServer(target);
  const database = server.then(({ kind }) =>
    readDatabase({
      place: storePlaces(settings).database,
      isInUse: kind === "running",
    })
  );
  const room = files.room(storageFolder(settings)).catch(() => undefined);
  const probes = clock.within(database, SAMPLES_LIMIT_MS).then((state) =>
    probeUpstreams({
      settings,
      signal: ending.signal,
      pathsOf: (upstream) => [
        ...paths,
        ...samplesIn(state).filter(({ upstreams }) => upstreams.includes(upstream))
          .map(({ storePathHash }) => storePathHash),
      ],
    })
  );
  return { server, database, room, probes, [Symbol.dispose]: () => ending.abort() };
}

/** The database in words, without credentials. */
function placeText(settings: Settings): string {
  const { database } = storePlaces(settings);
  return database.kind === "sqlite" ? database.path : withoutUrlSecrets(database.url);
}

/** Never rejects, and never takes longer than its limit. */
async function settled(
  subject: string,
  check: Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const { failed, notChecked } = findingsOn(subject);
  const caught = check.catch((error) => [failed(messageOf(error), "correct that setting or file")]);
  const late = notChecked(`no result in ${CHECK_LIMIT_MS / 1_000} s`, "run this again");
  return await clock.within(caught, CHECK_LIMIT_MS) ?? [late];
}

async function clockFindings(
  settings: Settings,
  { probes, database }: SharedFacts,
): Promise<readonly Finding[]> {
  const clockLeadMs = (await probes).flatMap((probe) => probe.clockLeadMs ?? []);
  const state = await database;
  const leadOverDatabaseMs = "health" in state ? state.clockLeadMs : undefined;
  return checkClock({
    ...{ nowMs: clock.wallMs(), clockLeadMs, leadOverDatabaseMs },
    newestMs: newestTimeIn(settings),
  });
}

async function limitFindings(settings: Settings, reads: SharedFacts): Promise<readonly Finding[]> {
  const [server, state, room] = await Promise.all([reads.server, reads.database, reads.room]);
  const stock = stockIn(state);
  const isLocal = storePlaces(settings).nars.kind === "local";
  const stats = server.kind === "running" ? server.stats : undefined;
  return checkLimit({
    order: settings["cache.max-size"],
    usedBytes: stock === undefined ? stats?.usedBytes : stock.keptBytes + stock.pendingBytes,
    pinnedBytes: stock?.protectedBytes,
    // A bucket has room for all.
    room: isLocal ? room : { freeBytes: Infinity, totalBytes: Infinity, files: undefined },
  });
}

async function keyFindings(settings: Settings, reads: SharedFacts): Promise<readonly Finding[]> {
  if (!settings["cache.sign-narinfo"]) {
    return [findingsOn("signing key").ok("none: narinfos keep the signatures of upstreams alone")];
  }
  const [server, database] = await Promise.all([reads.server, reads.database]);
  if (!isKeyShared(settings)) {
    const path = keyFileOf(settings, storageFolder(settings));
    return checkKey({ ...await keyFacts(path), isUsed: database.kind !== "missing", server });
  }
  if (!("health" in database)) {
    return [findingsOn("signing key").notChecked("it is in the database", "correct that first")];
  }
  const { publicKey } = database;
  const path = "key in the database";
  return checkKey({ path, publicKey, problem: undefined, isUsed: false, server });
}

async function upstreamFindings(
  settings: Settings,
  probes: SharedFacts["probes"],
): Promise<readonly Finding[]> {
  const requiresSignature = settings["cache.require-upstream-signature"];
  return checkUpstreams({ probes: await probes, requiresSignature });
}

async function proxyFindings(
  { settings, target }: DiagnosisOrder,
  state: ServerState,
): Promise<readonly Finding[]> {
  if (target === undefined || state.kind !== "running") return [stopped("proxy headers")];
  return [await checkProxyHeaders(settings, target, state)];
}

async function pullFindings(
  order: DiagnosisOrder,
  reads: SharedFacts,
): Promise<readonly Finding[]> {
  const { target, settings, paths: given } = order;
  const [server, database] = await Promise.all([reads.server, reads.database]);
  if (target === undefined || server.kind !== "running") return [stopped("pull")];
  const stored = samplesIn(database).filter(({ fileSize }) => fileSize <= PULL_BYTES_MAX)
    .map(({ storePathHash }) => storePathHash);
  const keys = [
    ...server.publicKey == null ? [] : [parsePublicKey(server.publicKey)],
    ...settings["cache.upstream-public-key"],
    ...settings["cache.trusted-upload-key"],
  ];
  return [await checkPull({ target, given, stored, keys })];
}

function stopped(subject: string): Finding {
  return findingsOn(subject).notChecked("larder does not answer", "start it, and run this again");
}

function samplesIn(state: DatabaseState | undefined) {
  return state !== undefined && "health" in state ? state.health.samples : [];
}

function stockIn(state: DatabaseState) {
  return "health" in state ? state.health.stock : undefined;
}
