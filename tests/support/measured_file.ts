import { createHash } from "node:crypto";

/** The measure that a verify thread takes of an uncompressed file. */
export function measuredFile(path: string) {
  const bytes = Deno.readFileSync(path);
  const digest = new Uint8Array(createHash("sha256").update(bytes).digest());
  return { kind: "measured", digest, narSize: bytes.length } as const;
}
