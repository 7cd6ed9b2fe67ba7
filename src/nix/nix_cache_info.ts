import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

/** The fields of `nix-cache-info`. Clients ask caches of a lower priority first. */
export interface NixCacheInfo {
  readonly storeDir: string;
  readonly wantMassQuery: boolean;
  readonly priority?: number;
}

const TEXT_MAX = 64 * 1024;
const PRIORITY_REGEXP = /^[0-9]{1,9}$/;

/**
 * Parses as leniently as Nix: skips unknown and malformed lines. Throws "corrupt" without a store
 * directory (an error page, say), or if the priority is no number.
 */
export function parseNixCacheInfo(text: string): NixCacheInfo {
  if (text.length > TEXT_MAX) throw corrupt(`it is over ${TEXT_MAX} characters`);
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) values.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const storeDir = values.get("StoreDir") ?? "";
  if (!storeDir.startsWith("/")) throw corrupt("it has no StoreDir");
  const priority = values.get("Priority");
  if (priority !== undefined && !PRIORITY_REGEXP.test(priority)) {
    throw corrupt(`bad Priority ${excerpt(priority)}`);
  }
  return {
    storeDir,
    wantMassQuery: values.get("WantMassQuery") === "1",
    ...(priority !== undefined && { priority: Number(priority) }),
  };
}

/** The text for clients, with every line ended. */
export function formatNixCacheInfo(
  { storeDir, wantMassQuery, priority }: Required<NixCacheInfo>,
): string {
  const massQuery = wantMassQuery ? 1 : 0;
  return `StoreDir: ${storeDir}\nWantMassQuery: ${massQuery}\nPriority: ${priority}\n`;
}

function corrupt(state: string): Failure {
  return new Failure("corrupt", `Cannot read nix-cache-info: ${state}`);
}
