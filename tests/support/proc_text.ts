// The last line may have no end.
const SCRIPT = 'while IFS= read -r line || [ -n "$line" ]; do printf "%s\\n" "$line"; done <"$0"';

/**
 * The text of a file below `/proc`; empty for a missing one, and without a shell. Deno reads none
 * there without all permissions, and a machine may have no `cat`.
 */
export function procText(path: string): string {
  try {
    const { stdout } = new Deno.Command("sh", { args: ["-c", SCRIPT, path], stderr: "null" })
      .outputSync();
    return new TextDecoder().decode(stdout);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}
