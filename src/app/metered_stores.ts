import { type Around, around } from "../base/around.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import { isRefusal, type MetadataStore, type StorageIdKeeper } from "../metadata/metadata_store.ts";
import type { ListedNar, NarStore } from "../storage/nar_store.ts";
import type { OperationOf } from "../telemetry/instruments/operation_labels.ts";
import type { OperationMeter } from "../telemetry/operation_meter.ts";

type DatabaseOperation = OperationOf<"database">;

/** The methods that ask the database. `narinfoLanded` waits for a write that counts already. */
const DATABASE_OPERATIONS = {
  findNarinfo: "read",
  findNar: "read",
  sourcesOf: "read",
  narinfosOf: "read",
  narOfFormerName: "read",
  formerNamesOf: "read",
  keptNars: "read",
  usedNars: "read",
  referencesOf: "read",
  pathTimes: "read",
  graphRows: "read",
  narinfoBodies: "read",
  findNamed: "read",
  findSigned: "read",
  signedCounts: "read",
  findPin: "read",
  pins: "read",
  namedPins: "read",
  findDocument: "read",
  documentPiece: "read",
  documentBytes: "read",
  debuginfoSourcesOf: "read",
  history: "read",
  pulls: "read",
  findPull: "read",
  databaseSize: "read",
  stock: "read",
  members: "read",
  coldest: "read",
  areSumsRight: "read",
  pendingFiles: "read",
  storageId: "read",
  apply: "write",
  reserve: "write",
  beat: "write",
  leave: "write",
  evict: "write",
  sweepRows: "write",
  protect: "write",
  recount: "write",
  expireNars: "write",
  recordHistory: "write",
  recordPulls: "write",
  notePin: "write",
  putFormerNames: "write",
} as const satisfies Readonly<
  Record<
    Exclude<keyof MetadataStore, "narinfoLanded"> | keyof Pick<StorageIdKeeper, "storageId">,
    DatabaseOperation
  >
>;

const BOARD_OPERATIONS = {
  report: "write",
  withdraw: "write",
  sharedNowMs: "read",
} as const satisfies Readonly<Record<keyof MemberBoard, DatabaseOperation>>;

/** A store that counts and times its queries. Belongs below the memory cache. */
export function meteredMetadata<Store extends MetadataStore & Pick<StorageIdKeeper, "storageId">>(
  inner: Store,
  meter: OperationMeter<DatabaseOperation>,
): Store {
  return around<Store>(inner, aroundEach(DATABASE_OPERATIONS, meter));
}

/** The same for the reports of the members. */
export function meteredBoard(
  inner: MemberBoard,
  meter: OperationMeter<DatabaseOperation>,
): MemberBoard {
  return around(inner, aroundEach(BOARD_OPERATIONS, meter));
}

/** The same for a folder of NAR files. The client of S3 counts its requests itself. */
export function meteredFolder(
  inner: NarStore,
  meter: OperationMeter<OperationOf<"storage">>,
): NarStore {
  return {
    open: (at, options) => meter.run("open", () => inner.open(at, options), options),
    put: (at, path) => meter.run("write", () => inner.put(at, path)),
    remove: (at) => meter.run("remove", () => inner.remove(at)),
    async *list(prefix, options): AsyncIterable<ListedNar> {
      const files = inner.list(prefix, options)[Symbol.asyncIterator]();
      try {
        // Up to the first file: the rest takes as long as its reader does.
        const first = await meter.run("list", () => files.next());
        if (first.done) return;
        yield first.value;
        yield* { [Symbol.asyncIterator]: () => files };
      } finally {
        await files.return?.();
      }
    },
  };
}

function aroundEach<Operation extends string>(
  operations: Readonly<Record<string, Operation>>,
  meter: OperationMeter<Operation>,
) {
  const wraps = Object.entries<Operation>(operations).map(([method, operation]) => {
    const metered: Around = (call, args) =>
      meter.run(operation, call, { signal: args.find(isSignal), isAnswer: isRefusal });
    return [method, metered];
  });
  return Object.fromEntries(wraps);
}

function isSignal(given: unknown): given is AbortSignal {
  return given instanceof AbortSignal;
}
