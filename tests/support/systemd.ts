import { programsMissing } from "./program.ts";
import { tempFolder } from "./temp_folder.ts";

/** Why systemd's own tool cannot be asked here; empty when it can. */
export const SYSTEMD_MISSING = programsMissing("systemd-analyze");

export interface UnitFile extends Disposable {
  readonly path: string;
}

/** A unit of this text, as larder.service in a folder of its own. */
export function unitFile(text: string): UnitFile {
  const folder = tempFolder();
  const path = `${folder.path}/larder.service`;
  Deno.writeTextFileSync(path, text);
  return { path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

/** The complaints of systemd about a unit; empty for a right one. */
export function problemsWith({ path }: UnitFile): string {
  const { success, text } = analyze(["verify", "--man=no", path]);
  return success || text !== "" ? text : "systemd-analyze verify failed";
}

/** The exposure of the service, on systemd's scale from 0 (nothing) to 10. */
export function exposureOf({ path }: UnitFile): number {
  const { text } = analyze(["security", "--offline=true", path]);
  const exposure = /Overall exposure level for \S+: ([\d.]+)/.exec(text)?.[1];
  if (exposure === undefined) throw new Error(`Cannot rate ${path}: ${text}`);
  return Number(exposure);
}

function analyze(args: readonly string[]): { readonly success: boolean; readonly text: string } {
  const command = new Deno.Command("systemd-analyze", {
    args: [...args],
    env: { SYSTEMD_PAGER: "", SYSTEMD_COLORS: "0" },
  });
  const { success, stdout, stderr } = command.outputSync();
  const decoder = new TextDecoder();
  return { success, text: decoder.decode(stdout) + decoder.decode(stderr) };
}
