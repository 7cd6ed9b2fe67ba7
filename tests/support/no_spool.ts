import type { Spool } from "../../src/storage/spool.ts";

/** A machine with no temporary files of other members. */
export const NO_SPOOL: Spool = { others: () => [], remove: () => true };
