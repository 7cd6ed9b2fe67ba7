import type { Bytes } from "../../base/bytes.ts";
import { type BufferLender, type ByteSource, DirectStream } from "../../base/direct_stream.ts";

/** The size of a piece for those who read such bytes as a stream. */
const READ_BYTES = 256 * 1024;

/** The next parts in order: none at the end. They stay as they are until the next call. */
export type PartLists = AsyncGenerator<readonly Uint8Array[], void>;

/**
 * A stream of parts that are copied once, into the buffer of who sends them. `begun` resolves with
 * the first ones. `end` ends a wait for more.
 */
export function streamOfParts(
  lists: PartLists,
  end: () => void,
): { readonly stream: DirectStream; readonly begun: Promise<void> } {
  const source = new PartSource(lists, end);
  const begun = source.load();
  begun.catch(() => undefined);
  return { stream: new DirectStream(source, READ_BYTES), begun };
}

class PartSource implements ByteSource {
  readonly #lists: PartLists;
  readonly #end: () => void;
  #loading: Promise<void> | undefined;
  #parts: readonly Uint8Array[] = [];
  #length = 0;
  /** The bytes of these parts that were read. */
  #position = 0;
  #isOver = false;

  constructor(lists: PartLists, end: () => void) {
    this.#lists = lists;
    this.#end = end;
  }

  get heldBytes(): number {
    return this.#length;
  }

  /** Waits for further parts, or the end. */
  load(): Promise<void> {
    return this.#loading ??= this.#load();
  }

  async #load(): Promise<void> {
    this.#hold([]);
    const { value, done } = await this.#lists.next();
    if (done) this.#isOver = true;
    else this.#hold(value);
    this.#loading = undefined;
  }

  async read(lend: BufferLender): Promise<number> {
    while (this.#position === this.#length && !this.#isOver) await this.load();
    if (this.#isOver) return 0;
    const into = lend(this.#length - this.#position);
    const length = copyInto(into, this.#parts, this.#position);
    this.#position += length;
    return length;
  }

  rewind(byteLength: number): void {
    this.#position -= byteLength;
  }

  close(): void {
    this.#end();
    this.#lists.return().catch(() => undefined);
  }

  #hold(parts: readonly Uint8Array[]): void {
    this.#parts = parts;
    this.#length = parts.reduce((sum, { length }) => sum + length, 0);
    this.#position = 0;
  }
}

/** Copies the bytes of the parts from `start` on, as many as there is room for. */
function copyInto(into: Bytes, parts: readonly Uint8Array[], start: number): number {
  let copied = 0;
  let from = start;
  for (const part of parts) {
    const bytes = part.subarray(from, from + into.length - copied);
    into.set(bytes, copied);
    copied += bytes.length;
    from = Math.max(0, from - part.length);
  }
  return copied;
}

/**
 * The bytes from `start` up to `end`. The last one comes only `whenWhole`, where that is set: behind
 * all lists, whose end may throw. Else it reads no further.
 */
export async function* clippedParts(
  lists: PartLists,
  { start, end, whenWhole }: {
    readonly start: number;
    readonly end: number;
    readonly whenWhole: boolean;
  },
): PartLists {
  const before = whenWhole ? end - 1 : end;
  let position = 0;
  let last: Uint8Array | undefined;
  for await (const parts of lists) {
    const wanted: Uint8Array[] = [];
    for (const part of parts) {
      const from = Math.max(0, start - position);
      const bytes = part.subarray(from, Math.max(from, before - position));
      if (bytes.length > 0) wanted.push(bytes);
      const lastAt = before - position;
      if (whenWhole && lastAt >= 0 && lastAt < part.length) last = part.slice(lastAt, lastAt + 1);
      position += part.length;
    }
    if (wanted.length > 0) yield wanted;
    if (!whenWhole && position >= end) return;
  }
  if (last !== undefined) yield [last];
}
