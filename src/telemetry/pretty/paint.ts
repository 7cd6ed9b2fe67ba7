import type { LogLevel } from "../logger.ts";

type Paint = (text: string) => string;

/** The colours of a line. Words tell the levels apart, too. */
export interface Paints extends Readonly<Record<LogLevel, Paint>> {
  readonly strong: Paint;
  readonly faint: Paint;
  readonly good: Paint;
}

/** The ANSI colours, or none. */
export function paint(hasColors: boolean): Paints {
  const sgr = (code: number): Paint => (text) =>
    hasColors && text !== "" ? `\x1b[${code}m${text}\x1b[0m` : text;
  return {
    strong: sgr(1),
    faint: sgr(2),
    good: sgr(32),
    debug: sgr(2),
    info: sgr(32),
    warn: sgr(33),
    error: sgr(31),
  };
}
