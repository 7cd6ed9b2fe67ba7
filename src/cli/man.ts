import denoJson from "../../deno.json" with { type: "json" };
import { EXIT } from "../base/exit_codes.ts";
import type { Command } from "./command.ts";
import { noOperands, parseArguments } from "./flags.ts";
import { manPage } from "./man_page.ts";

/** `larder man`: `commands` are those that the page describes. */
export function manCommand(commands: () => readonly Command[]): Command {
  return {
    name: "man",
    summary: "Print the manual page larder(1)",
    examples: [
      ["larder man | man -l -", "Read it"],
      ["larder man > /usr/local/share/man/man1/larder.1", "Let `man larder` find it"],
    ],
    flags: {},
    async run(args, process) {
      noOperands(parseArguments({}, { ...process, args }).rest);
      process.writeOut(manPage(commands(), denoJson.version));
      return EXIT.ok;
    },
  };
}
