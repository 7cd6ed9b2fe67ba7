import { counted } from "../../base/format_units.ts";
import { hashOfBaseName, isBaseName } from "../../nix/store_path.ts";
import type { FailedPath } from "./each.ts";
import { thoseNamed } from "./package_names.ts";
import { answerJson } from "./server_answer.ts";
import type { ServerClient } from "./server_client.ts";
import type { StorePathArgument } from "./store_path_argument.ts";
import { ServerJson } from "./server_json.ts";

/** Paths in a list for people. */
const LISTED_MAX = 10;

/**
 * The one stored path that has a name, as the status page's search finds it; else why there is
 * none. A name without a version stands for any version, and a part of a name for the whole.
 */
export async function findStored(
  client: Pick<ServerClient, "request">,
  given: string,
  limitMs: number,
): Promise<StorePathArgument | FailedPath> {
  const path = `/explain?q=${encodeURIComponent(given)}`;
  const answer = await answerJson(client, path, { limitMs });
  const named = new ServerJson(answer).at("named").list.map((one) => ({
    hash: one.at("hash").text ?? "",
    name: one.at("name").text ?? "",
  }));
  const close = thoseNamed(given, named);
  const matching = (close.length > 0 ? close : named).map(({ hash, name }) => `${hash}-${name}`);
  const [baseName = ""] = matching;
  if (matching.length === 1 && isBaseName(baseName)) {
    return { given, baseName, storePathHash: hashOfBaseName(baseName) };
  }
  return { name: given, reason: reasonOf(matching) };
}

function reasonOf(matching: readonly string[]): string {
  if (matching.length === 0) {
    return "no stored path has such a name; give the store path, or its hash";
  }
  const hidden = matching.length - LISTED_MAX;
  const lines = matching.slice(0, LISTED_MAX).map((path) => `\n    ${path}`);
  const more = hidden > 0 ? `\n    and ${hidden} more: give more of the name` : "";
  const have = counted(matching.length, "stored path has", "stored paths have");
  return `${have} such a name; give one of${lines.join("")}${more}`;
}
