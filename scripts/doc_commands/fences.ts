/** A fenced block of a Markdown page. */
export interface Fence {
  /** The line of its first fence, counted from 1. */
  readonly line: number;
  readonly language: string;
  /** Why no machine of the tests can run it: `not-run="needs systemd"`. */
  readonly notRun: string | undefined;
  /** The file that holds it, for a block that is no command: `file="/etc/nix/netrc"`. */
  readonly file: string | undefined;
  readonly text: string;
}

const OPEN_REGEXP = /^(?<indent> *)```(?<language>\S*)(?<attributes>.*)$/;
const ATTRIBUTE_REGEXP = /(?<name>[\w-]+)="(?<value>[^"]*)"/g;

/** All fenced blocks, in order. */
export function readFences(markdown: string): readonly Fence[] {
  const fences: Fence[] = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const { indent = "", language = "", attributes = "" } =
      OPEN_REGEXP.exec(lines[at] ?? "")?.groups ?? {};
    if (OPEN_REGEXP.exec(lines[at] ?? "") === null) continue;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    const named = new Map(
      [...attributes.matchAll(ATTRIBUTE_REGEXP)].map((
        { groups },
      ) => [groups?.["name"], groups?.["value"]]),
    );
    const text = lines.slice(at + 1, end).map((line) => line.slice(indent.length)).join("\n");
    fences.push({
      line: at + 1,
      language,
      notRun: named.get("not-run"),
      file: named.get("file"),
      text: `${text}\n`,
    });
    at = end;
  }
  return fences;
}
