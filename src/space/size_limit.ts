import { formatBytes } from "../base/format_units.ts";
import { DATABASE_SHARE, type DatabaseSize } from "../metadata/space_keeper.ts";
import type { DiskRoom } from "../runtime/files.ts";

/** Where the size limit comes from. */
export type LimitSource =
  /** `--cache-max-size` names a size. */
  | "set"
  /** A part of the disk stays free. */
  | "disk"
  /** `--cache-max-size` is `unlimited`. */
  | "unlimited"
  /** The NAR files are in a bucket, which has no end. */
  | "bucket"
  /** The limit should come from the disk, whose room larder could not read. */
  | "unknown";

/** The disk of the stored files. */
export interface StorageDisk {
  /** Throws where that is unknown. */
  room(): Promise<DiskRoom>;
  /** Bytes of partial files on it: reserved, and no longer free. */
  partialBytes(): number;
}

/** The part of a disk that stays free. */
const RESERVE_SHARE = 1 / 10;
const RESERVE_BYTES_MAX = 20 * 2 ** 30;

/**
 * What larder may hold on a disk that others fill: a limit of nothing would send each request of
 * each machine to the upstreams, for room that is gone in a moment.
 */
const FLOOR_SHARE = 1 / 100;
const FLOOR_BYTES_MAX = 2 ** 30;

/** The bytes that stay free on a disk of this size. */
export function diskReserveBytes(totalBytes: number): number {
  return Math.min(Math.floor(totalBytes * RESERVE_SHARE), RESERVE_BYTES_MAX);
}

/** The limit on a disk where larder holds `heldBytes`, with its partial files. */
export function diskLimitBytes({ freeBytes, totalBytes }: DiskRoom, heldBytes: number): number {
  const floorBytes = Math.min(Math.floor(totalBytes * FLOOR_SHARE), FLOOR_BYTES_MAX);
  return Math.max(floorBytes, heldBytes + freeBytes - diskReserveBytes(totalBytes));
}

/** The limit of all stored and reserved bytes, and where it comes from. */
export class SizeLimit {
  #source: LimitSource;
  #bytes: number;
  #reserveBytes: number | undefined;
  readonly #disk: StorageDisk | undefined;
  /** True where the NAR files are in a bucket: the disk says nothing of their room. */
  readonly isOfBucket: boolean;

  private constructor(
    source: LimitSource,
    bytes: number,
    { disk, isOfBucket = false }: { disk?: StorageDisk; isOfBucket?: boolean } = {},
  ) {
    this.#source = source;
    this.#bytes = bytes;
    this.#disk = disk;
    this.isOfBucket = isOfBucket;
  }

  /** A size that the operator names; `Infinity` for none. */
  static of(bytes: number, isOfBucket = false): SizeLimit {
    return new SizeLimit(bytes === Infinity ? "unlimited" : "set", bytes, { isOfBucket });
  }

  static ofBucket(): SizeLimit {
    return new SizeLimit("bucket", Infinity, { isOfBucket: true });
  }

  /** Has no room before the first `look`. */
  static ofDisk(disk: StorageDisk): SizeLimit {
    return new SizeLimit("disk", 0, { disk });
  }

  /** `Infinity` without a limit. */
  get bytes(): number {
    return this.#bytes;
  }

  get source(): LimitSource {
    return this.#source;
  }

  /** The bytes of the disk that stay free; `undefined` where the limit has another source. */
  get reserveBytes(): number | undefined {
    return this.#reserveBytes;
  }

  get isOfDisk(): boolean {
    return this.#disk !== undefined;
  }

  /**
   * Follows the disk, where the limit comes from it. `heldBytes` are the stored ones. Throws where
   * the room is unknown: the last limit stays, and before the first look there is none.
   */
  async look(heldBytes: number): Promise<void> {
    if (this.#disk === undefined) return;
    try {
      const room = await this.#disk.room();
      this.#bytes = diskLimitBytes(room, heldBytes + this.#disk.partialBytes());
      this.#reserveBytes = diskReserveBytes(room.totalBytes);
      this.#source = "disk";
    } catch (error) {
      if (this.#reserveBytes === undefined) {
        this.#source = "unknown";
        this.#bytes = Infinity;
      }
      throw error;
    }
  }
}

/** Where a limit comes from, for people. */
export function limitOrigin(source: LimitSource, reserveBytes?: number | null): string {
  switch (source) {
    case "set":
      return "--cache-max-size";
    case "disk":
      return reserveBytes == null
        ? "auto: a tenth of the disk stays free"
        : `auto: ${formatBytes(reserveBytes)} of the disk stay free`;
    case "unlimited":
      return "--cache-max-size unlimited";
    case "bucket":
      return "auto: a bucket has no end";
    case "unknown":
      return "auto: the room of the disk is unknown";
  }
}

/** A remedy where pins and running downloads leave no room below the limit. */
export function moreRoomHint(source: LimitSource): string {
  return source === "disk"
    ? "make room on the disk, or unpin something"
    : "raise --cache-max-size, or unpin something";
}

/** Bytes reserved for one download. Leaving the scope gives them back. */
export interface Reservation extends Disposable {
  readonly bytes: number;
  /** The same in the ledger, for the row of the file; `undefined` without a limit. */
  readonly ledgerBytes: number | undefined;
  /** Reserves `bytes` more; false, without a change, where they are not granted. */
  grow(bytes: number): boolean;
  /** The row of the file is written, and its bytes have left the ledger. */
  kept(): void;
}

/** The bytes of the storage as the database last reported them. */
export interface SeenBytes {
  readonly usedBytes: number;
  /** The part of the used bytes whose files are being removed. */
  readonly pendingBytes: number;
  /** The part of the used bytes that pins protect. */
  readonly pinnedBytes: number;
  /** Reserved by other members. */
  readonly othersBytes: number;
  /** Its counted bytes are a part of the used bytes. */
  readonly database: DatabaseSize;
}

/**
 * This member's reservations, and its view of the storage. The ledger grants the bytes to reserve,
 * so used plus reserved bytes of all members never exceed the limit. `observe` sets the used bytes:
 * end a reservation in the same turn, so that its bytes count exactly once.
 */
export class SpaceBudget {
  readonly limit: SizeLimit;
  #seen: SeenBytes = {
    ...{ usedBytes: 0, pendingBytes: 0, pinnedBytes: 0, othersBytes: 0 },
    database: { bytes: 0, countedBytes: 0 },
  };
  #ownReservedBytes = 0;
  #grantedBytes = 0;
  #keptBytes = 0;

  constructor(limit: SizeLimit) {
    this.limit = limit;
  }

  /** `Infinity` without a limit. */
  get limitBytes(): number {
    return this.limit.bytes;
  }

  /** Bytes as last observed. */
  get seen(): SeenBytes {
    return this.#seen;
  }

  get usedBytes(): number {
    return this.#seen.usedBytes;
  }

  /** Bytes of the database above its share of the limit; rows without NAR files must go. */
  get databaseExcessBytes(): number {
    const { countedBytes } = this.#seen.database;
    return Math.max(0, countedBytes - Math.floor(this.limitBytes * DATABASE_SHARE));
  }

  get pinnedBytes(): number {
    return this.#seen.pinnedBytes;
  }

  /** Reserved bytes of all members. */
  get reservedBytes(): number {
    return this.#ownReservedBytes + this.#seen.othersBytes;
  }

  /** Reserved by this member. */
  get ownReservedBytes(): number {
    return this.#ownReservedBytes;
  }

  /** Bytes that the ledger has reserved for this member, as far as known. */
  get grantedBytes(): number {
    return this.limitBytes === Infinity ? Infinity : this.#grantedBytes;
  }

  /** The sum of all reservations whose file was kept. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Negative above the limit, for example after the operator lowered it. */
  get freeBytes(): number {
    return this.limitBytes - this.usedBytes - this.reservedBytes;
  }

  observe(seen: SeenBytes): void {
    this.#seen = seen;
  }

  grant(bytes: number): void {
    if (this.limitBytes !== Infinity) this.#grantedBytes = bytes;
  }

  /** `undefined` where `bytes` are not granted. */
  take(bytes: number): Reservation | undefined {
    let held = 0;
    const isLimited = this.limitBytes !== Infinity;
    const grow = (more: number): boolean => {
      if (this.#ownReservedBytes + more > this.grantedBytes) return false;
      held += more;
      this.#ownReservedBytes += more;
      return true;
    };
    const end = () => {
      const bytes = held;
      this.#ownReservedBytes -= bytes;
      held = 0;
      return bytes;
    };
    const kept = () => {
      const bytes = end();
      this.#keptBytes += bytes;
      if (isLimited) this.#grantedBytes -= bytes;
    };
    if (!grow(bytes)) return undefined;
    return {
      get bytes() {
        return held;
      },
      get ledgerBytes() {
        return isLimited ? held : undefined;
      },
      grow,
      kept,
      [Symbol.dispose]: () => void end(),
    };
  }
}
