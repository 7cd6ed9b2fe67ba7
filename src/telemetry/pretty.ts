import type { Facts } from "../base/failure.ts";
import { visible, visibleLines } from "../base/visible.ts";
import type { LineSink } from "./logger.ts";

/** Printed without quotes: a line feed in them would make up a line. */
const IN_ONE_LINE: ReadonlySet<string> = new Set(["msg", "name"]);

/**
 * Turns JSON lines into lines for people before they go to `sink`. The library is loaded only
 * here: machines read JSON.
 */
export async function prettySink(sink: LineSink): Promise<LineSink> {
  const { prettyFactory } = await import("pino-pretty");
  const format = prettyFactory({
    colorize: Deno.stdout.isTerminal() && !Deno.noColor,
    timestampKey: "ts",
    translateTime: "SYS:HH:MM:ss",
    singleLine: true,
  });
  return { write: (line) => sink.write(format(harmless(JSON.parse(line))) ?? line) };
}

/** Facts may be a stranger's text, and the library prints some of them as they are. */
function harmless(line: Facts): Facts {
  return Object.fromEntries(
    Object.entries(line).map(([name, fact]) => [
      visible(name),
      typeof fact !== "string" ? fact : IN_ONE_LINE.has(name) ? visible(fact) : visibleLines(fact),
    ]),
  );
}
