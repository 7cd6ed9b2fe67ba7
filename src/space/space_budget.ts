import { DATABASE_SHARE, type DatabaseSize } from "../metadata/space_keeper.ts";
import type { SizeLimit } from "./size_limit.ts";

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
