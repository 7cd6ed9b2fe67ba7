export interface SystemThread {
  readonly id: number;
  /** The one that Deno gives it, cut to 15 characters. */
  readonly name: string;
  /** From -20, which goes first, to 19. */
  readonly nice: number;
}

/** Why the threads of a process cannot be listed here; empty when they can. */
export const THREADS_UNKNOWN = Deno.build.os === "linux"
  ? ""
  : "only Linux names the threads of a process";

const STAT_REGEXP = /^(\d+) \((.*)\) (.*)$/;

/** The nice value among the words behind the name. */
const NICE_WORD = 16;

/** The threads of a process that runs. */
export function threadsOf(pid: number): readonly SystemThread[] {
  // Deno reads nothing there without all permissions.
  const script = `for file in /proc/${pid}/task/*/stat; do
    IFS= read -r line <$file && echo "$line"
  done`;
  const { stdout } = new Deno.Command("sh", { args: ["-c", script], stderr: "null" }).outputSync();
  return new TextDecoder().decode(stdout).split("\n").flatMap((line) => {
    const [, id, name = "", rest = ""] = STAT_REGEXP.exec(line) ?? [];
    return id === undefined
      ? []
      : [{ id: Number(id), name, nice: Number(rest.split(" ")[NICE_WORD]) }];
  });
}
