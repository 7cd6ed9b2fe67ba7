/** Chance: identifiers, jitter and keys. */
export interface Dice {
  /** At least 0, less than 1. Others may guess it: no secret comes from it. */
  fraction(): number;
  /** A random UUID, which nobody has used before. */
  uuid(): string;
  /** Random bytes, fit for keys. */
  bytes(count: number): Uint8Array<ArrayBuffer>;
}

/** The chance of this machine. */
export const SYSTEM_DICE: Dice = {
  fraction: () => Math.random(),
  uuid: () => crypto.randomUUID(),
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
};
