import { Remover } from "../cache/remove.ts";
import { Space } from "../lru/space.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { AppParts } from "./build_app.ts";

/** The limit, and who else is on the storage. */
export interface SpaceParts {
  /** `Infinity` for none. */
  readonly limitBytes: number;
  /** Names this process. */
  readonly owner: string;
  /** What lies in the storage beside the kept files and our own growing ones. */
  readonly foreignBytes: () => number;
}

/** What the cache knows that decides on what may go. */
export interface SpaceUsers {
  readonly busy: () => ReadonlySet<NarName>;
  readonly flushUses: () => Promise<void>;
}

/** Wires the limit to the stores. */
export function buildSpace({ metadata, nars, space, nowMs, log }: AppParts, users: SpaceUsers) {
  return new Space({ ...space, ...users, metadata, nars, nowMs, log, observe: () => undefined });
}

/** What the routes of narinfos and NARs need for DELETE; nothing where it is not allowed. */
export function buildRemover(parts: AppParts, space: Space, busy: SpaceUsers["busy"]) {
  if (!parts.allowDelete) return { narinfos: {}, nars: {} };
  const remover = new Remover({
    metadata: parts.metadata,
    removeFiles: (giveUp) => space.removals.batch(giveUp),
    busy,
    owner: parts.space.owner,
    changed: () => void space.refresh(),
  });
  return {
    narinfos: { remove: (storePathHash: StorePathHash) => remover.narinfo(storePathHash) },
    nars: { remove: (narName: NarName) => remover.nar(narName) },
  };
}
