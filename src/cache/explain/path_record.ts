import { lruOf } from "../../base/lru.ts";
import { ownText } from "../../base/own_text.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";

/** Some 600 bytes each, with the senders of its NAR file. */
const PATHS_MAX = 5_000;

/** What an upstream said about a store path. */
export interface UpstreamWord {
  readonly upstream: string;
  /** `found`, `absent`, `down` if it got no request, or why its answer was of no use. */
  readonly result: string;
  readonly atMs: number;
}

/** A store path in the words of upstreams. */
export interface RecordedPath {
  /** Such as `hello-2.12`; `undefined` if no upstream had it. */
  readonly name: string | undefined;
  /** The newest answer of each upstream. */
  readonly answers: readonly UpstreamWord[];
}

const NOTHING: RecordedPath = { name: undefined, answers: [] };

/** What upstreams said about the newest paths, and who sent their NAR files. In memory only. */
export class PathRecord {
  readonly #nowMs: () => number;
  readonly #paths = lruOf<StorePathHash, RecordedPath>({ countMax: PATHS_MAX });
  readonly #senders = lruOf<NarName, readonly string[]>({ countMax: PATHS_MAX });

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `name`: the path's, in an answer that has it. */
  answered(storePathHash: StorePathHash, answer: Omit<UpstreamWord, "atMs">, name?: string): void {
    const known = this.#paths.peek(storePathHash) ?? NOTHING;
    const others = known.answers.filter(({ upstream }) => upstream !== answer.upstream);
    this.#paths.set(storePathHash, {
      name: known.name ?? (name === undefined ? undefined : ownText(name)),
      answers: [...others, { ...answer, atMs: this.#nowMs() }],
    });
  }

  /** Since the start of larder. */
  of(storePathHash: StorePathHash): RecordedPath {
    return this.#paths.get(storePathHash) ?? NOTHING;
  }

  /** `upstreams`: those whose bytes the stored file has. */
  sent(narName: NarName, upstreams: readonly string[]): void {
    this.#senders.set(narName, upstreams);
  }

  /** The upstreams that sent a NAR file; `undefined` if that is unknown. */
  sendersOf(narName: NarName): readonly string[] | undefined {
    return this.#senders.get(narName);
  }
}
