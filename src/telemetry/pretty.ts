import type { LineSink } from "./logger.ts";

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
  return { write: (line) => sink.write(format(line) ?? line) };
}
