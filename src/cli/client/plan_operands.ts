import { STORE_DIR } from "../../nix/store_path.ts";
import { INSTALLABLE_FORM } from "./installables.ts";
import {
  type Links,
  readStorePathArguments,
  STORE_PATH_EXPECTED,
  type StorePathArgument,
} from "./store_path_argument.ts";

/** A `.drv` of the store, and the outputs of it that are meant. */
export interface DerivationOperand {
  /** Its store path. */
  readonly path: string;
  readonly outputs: readonly string[] | "all";
}

/** Operands of `larder plan`, but for installables. */
export interface PlanOperands {
  readonly paths: readonly StorePathArgument[];
  readonly derivations: readonly DerivationOperand[];
}

/** `x.drv^out,dev`, as Nix writes it; older ones write `x.drv!out`. */
const OUTPUTS_REGEXP = /^(.*\.drv)[\^!]([\w,*+.?=-]+)$/;

const EXPECTED = `${STORE_PATH_EXPECTED}; a .drv file; or ${INSTALLABLE_FORM}`;

/** Reads all arguments. Throws a `ConfigError` with each invalid one, or if there are none. */
export function readPlanOperands(args: readonly string[], links: Links): PlanOperands {
  const paths: StorePathArgument[] = [];
  const derivations = new Map<string, DerivationOperand>();
  const split = args.map((arg) => {
    const [, path = arg, outputs = "*"] = OUTPUTS_REGEXP.exec(arg) ?? [];
    return { path, outputs: outputs.split(",") };
  });
  const read = readStorePathArguments(split.map(({ path }) => path), links, EXPECTED);
  for (const one of read) {
    if (one.baseName?.endsWith(".drv") !== true) {
      paths.push(one);
      continue;
    }
    const path = `${STORE_DIR}/${one.baseName}`;
    const names = split.filter((other) => other.path === one.given).flatMap((other) =>
      other.outputs
    );
    derivations.set(path, { path, outputs: names.includes("*") ? "all" : names });
  }
  return { paths, derivations: [...derivations.values()] };
}
