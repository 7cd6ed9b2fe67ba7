import type { Workplace } from "./workplace.ts";

const PART_BYTES = 2 ** 28;
const PAGE_BYTES = 4_096;

/** Writes to each page of as much memory as the argument says, and ends. */
const TOUCH = `
  const parts = [];
  for (let left = Number(Deno.args[0]); left > 0; left -= ${PART_BYTES}) {
    const part = new Uint8Array(${PART_BYTES});
    for (let at = 0; at < part.length; at += ${PAGE_BYTES}) part[at] = 1;
    parts.push(part);
  }
`;

/**
 * Touches free memory, which new files then get. A virtual machine's host provides a page at its
 * first write, in the time of the process that writes. Without this, 256 MiB cost a server some 400
 * ms more if no process had that memory before. Resolves at once where the memory is short.
 */
export async function touchMemory(workplace: Workplace, bytes: number): Promise<void> {
  if (Deno.systemMemoryInfo().available < 2 * bytes) return;
  await workplace.run({ command: Deno.execPath(), args: ["eval", TOUCH, String(bytes)] });
}
