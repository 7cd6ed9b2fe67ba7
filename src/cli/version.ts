import denoJson from "../../deno.json" with { type: "json" };
import { EXIT } from "../base/exit_codes.ts";
import type { Command } from "./command.ts";
import { noOperands, parseArguments } from "./flags.ts";

/** Commit, Deno and platform of this larder. */
export interface Build {
  /** The commit of the sources; `undefined` for a larder that runs from its source. */
  readonly commit: string | undefined;
  readonly deno: string;
  readonly platform: string;
}

/** `larder version`: the facts that a report of a problem should begin with. */
export const VERSION: Command = {
  name: "version",
  summary: "Print the version, its commit and its Deno",
  examples: [["larder version", "Print the first line of a problem report"]],
  flags: {},
  async run(args, process) {
    noOperands(parseArguments({}, { ...process, args }).rest);
    const { commit = "unknown: it runs from its source", deno, platform } = process.build();
    process.writeOut(
      `larder ${denoJson.version}\ncommit ${commit}\nDeno ${deno}\nplatform ${platform}\n`,
    );
    return EXIT.ok;
  },
};
