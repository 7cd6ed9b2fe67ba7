import { messageOf } from "../src/base/failure.ts";

const CANNOT_RUN_STATUS = 2;

/** Options that `read` makes of the arguments. Prints `usage` for `--help`, and behind an error. */
export function optionsOrExit<Options>(
  read: (words: readonly string[]) => Options,
  usage: string,
): Options {
  if (Deno.args.includes("--help")) {
    console.log(usage);
    Deno.exit(0);
  }
  try {
    return read(Deno.args);
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${usage}`);
    Deno.exit(CANNOT_RUN_STATUS);
  }
}
