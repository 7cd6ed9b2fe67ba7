import type { Command } from "./command.ts";
import { completionFlags } from "./completion_flags.ts";

/** A script for fish 3 and newer. */
export function fishCompletion(commands: readonly Command[]): string {
  const names = commands.map(({ name, summary }) =>
    `complete -c larder -f -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}\n`
  );
  const flags = commands.flatMap((command) => {
    const within = `complete -c larder -n '__fish_seen_subcommand_from ${command.name}'`;
    return completionFlags(command).map(({ flag, help, takesValue }) =>
      `${within} -l ${flag.slice(2)}${takesValue ? " -r" : ""} -d ${quoted(help)}\n`
    );
  });
  return `# Completion of larder for fish. To load it: larder completion fish | source
${names.join("")}${flags.join("")}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
