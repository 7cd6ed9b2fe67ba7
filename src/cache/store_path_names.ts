import { lruOf } from "../base/lru.ts";
import { ownText } from "../base/own_text.ts";
import type { NamedPath, NarFinder, NarinfoFinder } from "../metadata/metadata_store.ts";
import type { NarName } from "../nix/nar_name.ts";
import { nameInNarinfo } from "../nix/narinfo_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { PathRecord } from "./nar/path_record.ts";
import type { Facts } from "../base/failure.ts";

/** Some 100 bytes each. */
const NAMES_MAX = 10_000;

export interface StorePathNamesDeps {
  readonly metadata: Pick<NarFinder, "narinfosOf"> & Pick<NarinfoFinder, "findNarinfo">;
  readonly log: Pick<Logger, "debug">;
  /** Keeps names of paths beyond their eviction. Default: none are kept. */
  readonly record?: Pick<PathRecord, "named">;
}

/** Names such as `hello-2.12` of the store objects in NAR files, for people. */
export class StorePathNames {
  readonly #deps: StorePathNamesDeps;
  readonly #known = lruOf<string, string>({ countMax: NAMES_MAX });

  constructor(deps: StorePathNamesDeps) {
    this.#deps = deps;
  }

  /** A recent name. */
  known(narName: string): string | undefined {
    return this.#known.get(narName);
  }

  /** Notes the store path of a NAR, for the log lines of the download that follows. */
  note(narName: NarName, { storePathHash, name }: NamedPath): void {
    // Each is a part of its narinfo.
    this.#known.set(narName, ownText(name));
    this.#deps.record?.named(storePathHash, name, narName);
  }

  /**
   * Synchronous for a recent name. A NAR file may belong to several store paths; most often their
   * names are the same. `undefined` without a known store path.
   */
  of(narName: NarName): string | Promise<string | undefined> {
    return this.#known.get(narName) ?? this.#find(narName);
  }

  /** Name of a store path; its NAR may be absent. `undefined` without a narinfo. Never rejects. */
  async ofPath(storePathHash: StorePathHash): Promise<string | undefined> {
    const { metadata, log } = this.#deps;
    try {
      const row = await metadata.findNarinfo(storePathHash);
      return row && nameInNarinfo(row.body);
    } catch {
      log.debug("store path without a name", { hash: storePathHash });
      return undefined;
    }
  }

  async #find(narName: NarName): Promise<string | undefined> {
    const { metadata, log } = this.#deps;
    try {
      const [storePathHash] = await metadata.narinfosOf(narName);
      const name = storePathHash && await this.ofPath(storePathHash);
      if (storePathHash === undefined || name === undefined) return undefined;
      this.note(narName, { storePathHash, name });
      return name;
    } catch {
      log.debug("nar without a name", { nar: narName });
      return undefined;
    }
  }
}

/** The same log. Its lines about a NAR file also have the `name` of its store path, if known. */
export function namedLog(log: Logger, names: Pick<StorePathNames, "known">): Logger {
  const named = (facts: Facts | undefined): Facts | undefined => {
    if (facts?.["nar"] === undefined || facts["name"] !== undefined) return facts;
    const name = names.known(String(facts["nar"]));
    return name === undefined ? facts : { ...facts, name };
  };
  return {
    debug: (msg, facts) => log.debug(msg, named(facts)),
    info: (msg, facts) => log.info(msg, named(facts)),
    event: (kind, facts, level) => log.event(kind, named(facts), level),
    levels: log.levels,
  };
}
