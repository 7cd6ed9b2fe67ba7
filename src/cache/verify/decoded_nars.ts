import type { Bytes } from "../../base/bytes.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import type { NarName } from "../../nix/nar_name.ts";

/** Beside the encoder, which takes some 40 MiB. */
const BYTES_MAX = 16 << 20;

/** Memory for one NAR while its check decodes it. Disposing of it gives the memory back. */
export interface DecodedPlace extends Disposable {
  /** The NAR is right, and its file is kept. It stays beyond the place. */
  keep(nar: Bytes): void;
}

/** A NAR in memory. Disposing of it gives the memory back. */
interface DecodedNar extends Disposable {
  readonly nar: Bytes;
}

/**
 * NARs that their checks have decoded, for the next look of recompression: it need not decode their
 * files again. First come, first served: where there is no room, it does.
 */
export class DecodedNars {
  readonly #memory = new MemoryAllowance(BYTES_MAX);
  readonly #nars = new Map<NarName, DecodedNar>();

  /** `undefined` where there is no room. */
  place(name: NarName, narSize: number): DecodedPlace | undefined {
    const share = this.#memory.share();
    if (!share.take(narSize)) return undefined;
    return {
      keep: (nar) => {
        this.take(name)?.[Symbol.dispose]();
        this.#nars.set(name, { nar, ...share.hold() });
      },
      [Symbol.dispose]: () => share[Symbol.dispose](),
    };
  }

  names(): readonly NarName[] {
    return [...this.#nars.keys()];
  }

  /** The NAR, which its caller gives back. */
  take(name: NarName): DecodedNar | undefined {
    const decoded = this.#nars.get(name);
    this.#nars.delete(name);
    return decoded;
  }
}
