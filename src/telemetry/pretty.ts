import type { Facts } from "../base/failure.ts";
import { visible, visibleLines } from "../base/visible.ts";
import type { LineSink } from "./logger.ts";

/** Printed without quotes: a line feed in them would forge a line. */
const IN_ONE_LINE: ReadonlySet<string> = new Set(["msg", "name"]);

/**
 * Formats JSON lines for people before they reach `sink`. Loads the library on demand, as machines
 * read JSON.
 */
export async function prettySink(sink: LineSink): Promise<LineSink> {
  const { prettyFactory } = await import("pino-pretty");
  const format = prettyFactory({
    colorize: Deno.stdout.isTerminal() && !Deno.noColor,
    timestampKey: "ts",
    translateTime: "SYS:HH:MM:ss",
    singleLine: true,
  });
  return { write: (line) => sink.write(format(sanitized(JSON.parse(line))) ?? line) };
}

/**
 * The line with facts made visible: they may be untrusted, and the library prints some as they are.
 */
function sanitized(line: Facts): Facts {
  return Object.fromEntries(
    Object.entries(line).map(([name, fact]) => [
      visible(name),
      typeof fact !== "string" ? fact : IN_ONE_LINE.has(name) ? visible(fact) : visibleLines(fact),
    ]),
  );
}
