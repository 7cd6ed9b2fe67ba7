import { Failure } from "../../base/failure.ts";
import { type BaseName, hashOfBaseName, isBaseName, STORE_DIR } from "../../nix/store_path.ts";
import { ServerJson } from "./server_json.ts";
import type { StorePathArgument } from "./store_path_argument.ts";

/** Runs this machine's Nix, whose standard error is the user's. */
export type RunNix = (args: readonly string[]) => Promise<NixOutcome | undefined>;

export interface NixOutcome {
  readonly isSuccess: boolean;
  readonly output: string;
}

/** A store path of an installable. */
export interface EvaluatedPath extends StorePathArgument {
  readonly baseName: BaseName;
  /** The store path of the `.drv` that builds it. */
  readonly derivation: string | undefined;
}

/**
 * The store paths that `nix build` would bring into the store, of a derivation or a string, and the
 * derivation of each. Of anything else it is what that is: an error would show this expression.
 */
const OUT_PATHS = "d: if builtins.isString d then [ { path = d; } ] else " +
  'if (d.type or "") != "derivation" then { is = builtins.typeOf d; } else ' +
  "map (o: { path = d.${o}.outPath; derivation = d.drvPath; }) " +
  '(d.meta.outputsToInstall or [ (d.outputName or "out") ])';

const EVAL = [
  ...["--extra-experimental-features", "nix-command flakes", "eval", "--json"],
  ...["--apply", OUT_PATHS],
] as const;

/** The form of an installable, for messages. */
export const INSTALLABLE_FORM = "a flake's output such as nixpkgs#hello";

/** True for a flake's output, such as `.#hello` or `github:NixOS/nixpkgs#hello`. */
export function isInstallable(word: string): boolean {
  return word.includes("#");
}

/** The store paths of a flake's output. Nix evaluates it, and builds nothing. */
export async function evaluateInstallable(
  installable: string,
  nix: RunNix,
): Promise<readonly EvaluatedPath[]> {
  const outcome = await nix([...EVAL, "--", installable]);
  if (outcome === undefined) {
    const advice = "there is no nix on this machine; give the store path";
    throw new Failure("unavailable", `Cannot evaluate ${installable}: ${advice}`);
  }
  if (!outcome.isSuccess) {
    throw new Failure("bad-request", `Cannot evaluate ${installable}: nix says above why`);
  }
  const answer = new ServerJson(JSON.parse(outcome.output));
  const other = answer.at("is").text;
  if (other !== undefined) throw unfit(installable, TYPES[other] ?? other);
  return answer.list.map((one) => {
    const given = one.at("path").text ?? "";
    const baseName = given.slice(STORE_DIR.length + 1);
    if (!given.startsWith(`${STORE_DIR}/`) || !isBaseName(baseName)) {
      throw unfit(installable, "a text that is no store path");
    }
    const derivation = one.at("derivation").text;
    return { given, storePathHash: hashOfBaseName(baseName), baseName, derivation };
  });
}

/** Names of Nix's types. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ int: "a number", float: "a number", bool: "true or false", null: "null" },
  ...{ set: "a set", list: "a list", lambda: "a function", path: "a path" },
};

function unfit(installable: string, is: string): Failure {
  const advice = "expected a derivation or a store path, as for nix build";
  return new Failure("bad-request", `Cannot evaluate ${installable}: it is ${is}; ${advice}`);
}
