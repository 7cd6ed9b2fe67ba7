/** Invalid settings. Each problem is one line that names the value and its source. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map(escapeControls);
    super(lines.join("\n"));
    this.problems = lines;
  }
}

/** Escapes controls in user input, which must neither break the line nor steer a terminal. */
function escapeControls(text: string): string {
  return text.replaceAll(
    /\p{Cc}/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
