import { messageOf } from "../../base/failure.ts";
import { checkNarFacts } from "../../cache/verify/check_nar.ts";
import { measureBytes } from "../../cache/verify/measure_nar.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../nix/narinfo_parse.ts";
import type { PublicKey } from "../../nix/signature.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";
import { clock } from "../../runtime/current.ts";
import { answerText } from "../client/server_answer.ts";
import { boundedNar } from "../client/bounded_nar.ts";
import { ServerRefusal } from "../client/server_client.ts";
import { formatBytes } from "../../base/format_units.ts";
import { type Finding, findingsOn } from "./finding.ts";
import type { ServerTarget } from "./server_check.ts";

export interface PullOrder {
  readonly target: ServerTarget;
  /** Paths that the user named. */
  readonly given: readonly StorePathHash[];
  /** Small stored paths, tried if the user named none. */
  readonly stored: readonly StorePathHash[];
  /** The keys that a client of this larder trusts; its own first. */
  readonly keys: readonly PublicKey[];
}

/** Stored paths may be evicted meanwhile. */
const STORED_MAX = 5;

/** Pulls a path as a client does: narinfo, signature, NAR, NAR hash. */
export async function checkPull({ target, given, stored, keys }: PullOrder): Promise<Finding> {
  const { ok, failed, notChecked } = findingsOn("pull");
  const paths = given.length > 0 ? given : stored.slice(0, STORED_MAX);
  if (paths.length === 0) {
    return notChecked("no small path is stored", "give this command a store path");
  }
  for (const path of paths) {
    try {
      return ok(await pull(target, path, keys));
    } catch (error) {
      const isAbsent = error instanceof ServerRefusal && error.status === 404;
      if (isAbsent && given.length === 0) continue;
      const problem = isAbsent ? "neither larder nor an upstream has it" : messageOf(error);
      return failed(`${path}: ${problem}`, "see the log of larder, and the lines on upstreams");
    }
  }
  return notChecked("the stored paths are gone", "give this command a store path");
}

async function pull(
  target: ServerTarget,
  path: StorePathHash,
  keys: readonly PublicKey[],
): Promise<string> {
  const startedAtMs = clock.nowMs();
  const limits = { bytesMax: NARINFO_TEXT_MAX };
  const narinfo = parseNarinfo(await answerText(target.client, `/${path}.narinfo`, limits));
  if (narinfo.storePathHash !== path) throw new Error(`the narinfo is of ${narinfo.storePath}`);
  const signer = keys.find((key) => new TrustedKeys([key]).signerOf(narinfo) !== undefined);
  if (signer === undefined) throw new Error("no key that clients trust has signed its narinfo");
  const { pathname, search } = new URL(narinfo.url, "http://larder/");
  const nar = await target.client.request("GET", pathname + search, { redirect: "follow" });
  const source = nar.headers.get("x-cache") ?? "";
  await verify(narinfo, nar);
  const ms = Math.round(clock.nowMs() - startedAtMs);
  const bytes = formatBytes(narinfo.narSize);
  return `${narinfo.baseName} (${bytes}, ${source}) in ${ms} ms, signed by ${signer.name}`;
}

async function verify(narinfo: Narinfo, { body }: Response): Promise<void> {
  if (body === null) throw new Error("the NAR has no bytes");
  const { compression, narSize: narSizeMax } = narinfo;
  const file = boundedNar(body, narinfo);
  const measure = await measureBytes(file, { compression, narSizeMax });
  if (measure.kind === "undecodable") throw new Error(measure.detail);
  const narHash = sha256FromDigest(measure.digest);
  checkNarFacts(narinfo, { narHash, narSize: measure.narSize });
}
