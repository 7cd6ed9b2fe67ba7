import type { TimeSlice } from "../runtime/clock.ts";
import { LOST_NAR, NO_NAR, type ReferenceGraph } from "./reference_graph.ts";

/** Stored and missing part of a closure. */
export interface ClosureSize {
  /** Store paths with a stored narinfo and a kept NAR file. */
  readonly stored: number;
  /** The other known store paths of the closure. */
  readonly missing: number;
  /** Those of them whose row says that the file is kept, which is lost. Missing: none. */
  readonly lost?: number;
  /** Bytes of the kept NAR files. A shared one counts once. */
  readonly bytes: number;
  /** The part of the bytes that no other root reaches: what goes if this one is unpinned. */
  readonly ownBytes: number;
}

/** In place of a root: several roots reach the NAR file. */
const SEVERAL = -1;

/** Roots in one pass: one bit of a 32-bit integer each. */
const BATCH = 32;

/** The size of each root's closure, in the order of the roots. */
export async function closureSizes(
  graph: ReferenceGraph,
  slice: TimeSlice,
): Promise<readonly ClosureSize[]> {
  const sizes: Omit<ClosureSize, "ownBytes">[] = [];
  // The number of the only root that reaches each NAR file, from 1; 0: none does.
  const owners = new Int32Array(graph.narBytes.length);
  for (let first = 0; first < graph.roots.length; first += BATCH) {
    const roots = graph.roots.slice(first, first + BATCH);
    const marks = await markReached(graph, roots, slice);
    const counted = await countMarks(graph, { marks, owners, first }, slice);
    sizes.push(...counted.slice(0, roots.length));
  }
  const ownBytes = new Float64Array(graph.roots.length);
  for (const [nar, owner] of owners.entries()) {
    if (owner > 0) ownBytes[owner - 1] = (ownBytes[owner - 1] ?? 0) + (graph.narBytes[nar] ?? 0);
    if (nar % LOOK_EVERY === 0 && slice.isOver) await slice.yield();
  }
  return sizes.map((size, root) => ({ ...size, ownBytes: ownBytes[root] ?? 0 }));
}

/** The roots that reach each store path: bit `n` stands for root `n`. */
async function markReached(
  { starts, references, narOf }: ReferenceGraph,
  roots: readonly number[],
  slice: TimeSlice,
): Promise<Int32Array> {
  const count = narOf.length;
  const marks = new Int32Array(count);
  // A ring buffer. A store path is in it at most once, however often its marks change.
  const queue = new Int32Array(count);
  const queued = new Uint8Array(count);
  let head = 0;
  let length = 0;
  const mark = (place: number, added: number) => {
    const before = marks[place] ?? 0;
    if ((before | added) === before) return;
    marks[place] = before | added;
    if (queued[place]) return;
    queued[place] = 1;
    queue[(head + length++) % count] = place;
  };
  for (const [bit, root] of roots.entries()) mark(root, 1 << bit);
  while (length > 0) {
    const place = queue[head] ?? 0;
    head = (head + 1) % count;
    length--;
    queued[place] = 0;
    const end = starts[place + 1] ?? 0;
    for (let at = starts[place] ?? 0; at < end; at++) mark(references[at] ?? 0, marks[place] ?? 0);
    if (slice.isOver) await slice.yield();
  }
  return marks;
}

async function countMarks(
  { narOf, narBytes }: ReferenceGraph,
  { marks, owners, first }: {
    readonly marks: Int32Array;
    readonly owners: Int32Array;
    /** The root of the lowest bit. */
    readonly first: number;
  },
  slice: TimeSlice,
): Promise<readonly Omit<ClosureSize, "ownBytes">[]> {
  const stored = new Float64Array(BATCH);
  const missing = new Float64Array(BATCH);
  const lost = new Float64Array(BATCH);
  const bytes = new Float64Array(BATCH);
  const narMarks = new Int32Array(narBytes.length);
  for (let place = 0; place < marks.length; place++) {
    const reachedBy = marks[place] ?? 0;
    if (reachedBy === 0) continue;
    const nar = narOf[place] ?? NO_NAR;
    addToEach(nar < 0 ? missing : stored, reachedBy, 1);
    if (nar === LOST_NAR) addToEach(lost, reachedBy, 1);
    if (nar >= 0) narMarks[nar] = (narMarks[nar] ?? 0) | reachedBy;
    if (place % LOOK_EVERY === 0 && slice.isOver) await slice.yield();
  }
  for (let nar = 0; nar < narMarks.length; nar++) {
    const reachedBy = narMarks[nar] ?? 0;
    addToEach(bytes, reachedBy, narBytes[nar] ?? 0);
    if (reachedBy !== 0) {
      const isAlone = (reachedBy & (reachedBy - 1)) === 0 && owners[nar] === 0;
      owners[nar] = isAlone ? first + 32 - Math.clz32(reachedBy) : SEVERAL;
    }
    if (nar % LOOK_EVERY === 0 && slice.isOver) await slice.yield();
  }
  return Array.from(stored, (count, bit) => ({
    stored: count,
    missing: missing[bit] ?? 0,
    bytes: bytes[bit] ?? 0,
    ...lost[bit] ? { lost: lost[bit] } : {},
  }));
}

/** Reading the clock each time would cost more than the counting. */
const LOOK_EVERY = 256;

function addToEach(sums: Float64Array, marks: number, amount: number): void {
  for (let rest = marks; rest !== 0; rest &= rest - 1) {
    const bit = 31 - Math.clz32(rest & -rest);
    sums[bit] = (sums[bit] ?? 0) + amount;
  }
}
