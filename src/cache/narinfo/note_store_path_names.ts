import { nameInNarinfo } from "../../nix/narinfo_name.ts";
import type { StorePathNames } from "../store_path_names.ts";
import type { NarinfoFetchesDeps } from "./narinfo_fetches.ts";

type Rows = NarinfoFetchesDeps["metadata"];

/** The same rows. Names in new narinfos are known at once, for the download that follows. */
export function noteStorePathNames(rows: Rows, names: Pick<StorePathNames, "note">): Rows {
  return {
    async apply(changes, options) {
      await rows.apply(changes, options);
      for (const change of changes) {
        if (change.kind !== "put-narinfo") continue;
        const { storePathHash, body } = change.row;
        const name = nameInNarinfo(body);
        if (name !== undefined) names.note(change.nar.name, { storePathHash, name });
      }
    },
    sourcesOf: (narName) => rows.sourcesOf(narName),
    findNar: (narName) => rows.findNar(narName),
    findNarinfo: (storePathHash) => rows.findNarinfo(storePathHash),
    narinfoLanded: (storePathHash, limitMs) => rows.narinfoLanded?.(storePathHash, limitMs),
    referencesOf: (storePathHash) => rows.referencesOf(storePathHash),
  };
}
