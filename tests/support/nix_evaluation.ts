import { NIX_UNAVAILABLE, NixClient } from "./nix_client.ts";
import { testWhere } from "./program.ts";

/** The folder of nixpkgs' `lib`; `undefined` if the variable names none. */
const LIB = Deno.env.get("NIXPKGS_LIB") || undefined;

const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/** A configuration of NixOS with larder's module, as far as larder's module made it. */
export interface EvaluatedSystem {
  /** The messages of failed assertions. */
  readonly refusals: readonly string[];
  /** The text of larder.service. */
  readonly unit: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly ports: readonly number[];
  readonly nix: { readonly [setting: string]: readonly string[] };
  readonly virtualHosts: Readonly<Record<string, unknown>>;
  readonly tmpfiles: readonly string[];
  readonly users: readonly string[];
}

/** Registers a test that evaluates Nix files with nixpkgs' lib; ignored without one. */
export function evaluationTest(
  name: string,
  fn: () => Promise<void>,
  excuse = "",
): void {
  const hasNone = LIB === undefined ? "NIXPKGS_LIB names no folder of nixpkgs' lib" : "";
  testWhere(hasNone || NIX_UNAVAILABLE || excuse, name, fn);
}

/** Evaluates a configuration, a set in the Nix language. Throws Nix's own words. */
export async function evaluateSystem(configuration: string): Promise<EvaluatedSystem> {
  return await evaluate(`import ${ROOT}/tests/support/nix/system.nix {
    libPath = ${LIB};
    module = ${ROOT}/nix/module.nix;
    configuration = ${configuration};
  }`) as EvaluatedSystem;
}

/** Evaluates an expression of `pkgs`, packages of the tests, and `root`, larder's folder. */
export async function evaluateWithPackages(expression: string): Promise<unknown> {
  return await evaluate(`
    let
      root = ${ROOT};
      pkgs = import (root + "/tests/support/nix/pkgs.nix") {
        libPath = ${LIB};
        fetchurl = { url, hash }: "\${url}#\${hash}";
      };
    in ${expression}`);
}

/** Throws if a file is not in the Nix language. */
export async function parseNixFile(path: string): Promise<void> {
  using nix = new NixClient();
  await nix.run("nix-instantiate", ["--parse", `${ROOT}/${path}`]);
}

async function evaluate(expression: string): Promise<unknown> {
  using nix = new NixClient();
  const words = ["--eval", "--strict", "--json", "--expr", expression];
  return JSON.parse(await nix.run("nix-instantiate", words));
}
