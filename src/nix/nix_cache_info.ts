import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

/** What a binary cache says about itself. A lower priority is asked first. */
export interface NixCacheInfo {
  readonly storeDir: string;
  readonly wantMassQuery: boolean;
  readonly priority?: number;
}

const TEXT_MAX = 64 * 1024;
const PRIORITY_REGEXP = /^[0-9]{1,9}$/;

/**
 * Reads as leniently as Nix: unknown and odd lines are passed over. Throws "corrupt" when
 * there is no store directory (an error page, say) or the priority is not a number.
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

/** The text that we serve: every line ended. */
export function formatNixCacheInfo(
  { storeDir, wantMassQuery, priority }: Required<NixCacheInfo>,
): string {
  const massQuery = wantMassQuery ? 1 : 0;
  return `StoreDir: ${storeDir}\nWantMassQuery: ${massQuery}\nPriority: ${priority}\n`;
}

function corrupt(state: string): Failure {
  return new Failure("corrupt", `Cannot read nix-cache-info: ${state}`);
}
