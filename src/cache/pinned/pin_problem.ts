import { counted } from "../../base/format_units.ts";
import type { PinLook, PinRoot } from "../../metadata/metadata_store.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";

const NAMES_MAX = 3;

export interface PinProblemDeps {
  readonly nameOf: (storePathHash: StorePathHash) => Promise<string | undefined>;
  readonly log: Logger;
}

interface LookedAt extends PinRoot {
  readonly look: PinLook;
}

/** The problem of pins that were complete, or are to be kept so, and are not. */
export class PinProblem {
  readonly #deps: PinProblemDeps;
  readonly #outage;
  #state = "";

  constructor(deps: PinProblemDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "pinned-closures-complete");
  }

  /** Begins, changes or ends the problem, by the last looks at all pins. */
  async judge(pins: readonly PinRoot[]): Promise<void> {
    const short = pins.filter(isShort);
    const state = short.map(({ storePathHash, look: { missing, upstream, nowhere } }) =>
      [storePathHash, missing, upstream, nowhere].join(" ")
    ).join();
    if (state === this.#state) return;
    this.#state = state;
    if (short.length === 0) return this.#outage.worked();
    const names = await Promise.all(
      short.slice(0, NAMES_MAX).map(async ({ storePathHash }) =>
        await this.#deps.nameOf(storePathHash) ?? storePathHash
      ),
    );
    // Judged anew meanwhile.
    if (state !== this.#state) return;
    const missing = short.reduce((sum, { look }) => sum + look.missing, 0);
    const [first] = short;
    const examples = first?.look.examples.slice(0, NAMES_MAX) ?? [];
    const facts = {
      name: listed(names, short.length, "pin"),
      missing,
      paths: listed(examples, missing, "path"),
      hint: first === undefined ? "" : hintFor(first),
    };
    this.#outage.failed("pinned-closure-incomplete", facts, state);
  }
}

function isShort(pin: PinRoot): pin is LookedAt {
  const { look, keepComplete } = pin;
  if (look === undefined || look.missing === 0) return false;
  return keepComplete === true || look.completeAtMs !== undefined;
}

function hintFor({ storePathHash, keepComplete, look }: LookedAt): string {
  const { missing, upstream, nowhere } = look;
  if (nowhere > 0) {
    return `no upstream has ${nowhere} of them: push them again with nix copy --to .../upload, or build them`;
  }
  if (upstream === 0) return "wait: larder asks its upstreams again; check them if it lasts";
  const where = upstream === missing ? "upstreams still have them" : `upstreams have ${upstream}`;
  return keepComplete
    ? `${where}, and larder tries again: raise --cache-max-size if there is no room for them`
    : `${where}: larder pin --keep-complete ${storePathHash} fetches them, and keeps them`;
}

/** Some of `count` names, and how many more there are. */
function listed(names: readonly string[], count: number, noun: string): string {
  const more = count - names.length;
  return more > 0 ? `${names.join(", ")} and ${counted(more, `more ${noun}`)}` : names.join(", ");
}
