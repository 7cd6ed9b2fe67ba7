import type { Explainer } from "../../cache/explain/explainer.ts";
import type { NameFinder } from "../../metadata/name_finder.ts";
import { type Found, NAMED_MAX } from "../page/packages_part.ts";
import { storePathIn } from "./store_path_text.ts";

/** Longer ones are no name and no store path. */
const QUERY_CHARS_MAX = 300;

/** Explains a store path, or finds store paths by name. Never rejects. */
export async function searchPackages(
  { explainer, names }: {
    readonly explainer: Pick<Explainer, "explain">;
    readonly names: NameFinder;
  },
  text: string,
): Promise<Found> {
  const query = text.trim().slice(0, QUERY_CHARS_MAX);
  const none = { query, explanation: undefined, named: [], isUnreadable: false };
  if (query === "") return none;
  try {
    const path = storePathIn(query);
    if (path !== undefined) {
      return { ...none, explanation: await explainer.explain(path.hash, path.name) };
    }
    return { ...none, named: await names.findNamed(query, NAMED_MAX) };
  } catch {
    return { ...none, isUnreadable: true };
  }
}
