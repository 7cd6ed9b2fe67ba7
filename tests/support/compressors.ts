import { Buffer } from "node:buffer";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { isInstalled, programsMissing } from "./program.ts";
import { storedXz, storedZstd } from "./stored_frames.ts";

export interface CompressOptions {
  /** Start no program: xz and zstd only wrap the bytes. Fast for thousands of small NARs. */
  readonly stored?: boolean;
}

interface Row {
  readonly program?: "xz" | "zstd" | "bzip2";
  /** Without the program, in the process itself. */
  readonly builtIn?: (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

const ROWS: Readonly<Record<Compression, Row>> = {
  none: { builtIn: (bytes) => bytes },
  xz: { program: "xz", builtIn: storedXz },
  zstd: { program: "zstd", builtIn: storedZstd },
  bzip2: { program: "bzip2" },
  gzip: { builtIn: (bytes) => promisify(zlib.gzip)(bytes, { level: 1 }) },
  br: {
    builtIn: (bytes) =>
      promisify(zlib.brotliCompress)(bytes, {
        params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 },
      }),
  },
};
// 300 MB that cannot be made smaller take `xz -0` 37 s of processor time.
const XZ_PROGRAM_BYTES_MAX = 32 * 1024 * 1024;

/** Why this machine cannot compress so; empty when it can. Only bzip2 needs its program. */
export function available(compression: Compression): string {
  const { program, builtIn } = ROWS[compression];
  return builtIn !== undefined || program === undefined ? "" : programsMissing(program);
}

/**
 * By the real program where there is one. Else, and for an xz of over 32 MiB, xz and zstd come out
 * valid but no smaller. Throws the reason of `available`.
 */
export async function compress(
  bytes: Uint8Array,
  compression: Compression,
  { stored = false }: CompressOptions = {},
): Promise<Bytes> {
  const { program, builtIn } = ROWS[compression];
  const isTooMuch = compression === "xz" && bytes.length > XZ_PROGRAM_BYTES_MAX;
  const isWrapped = builtIn !== undefined && (stored || isTooMuch);
  if (program !== undefined && !isWrapped && isInstalled(program)) {
    return await filter(program, ["-1", "-c", "-q"], bytes);
  }
  if (builtIn === undefined) throw new Error(`Cannot compress: ${available(compression)}`);
  return owned(await builtIn(bytes));
}

/** The output of `program` for `bytes`. Throws when it fails. */
export async function filter(
  program: string,
  args: readonly string[],
  bytes: Uint8Array,
): Promise<Bytes> {
  const command = new Deno.Command(program, {
    args: [...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  await using child = command.spawn();
  const fed = feed(child.stdin, bytes);
  const { success, stdout, stderr } = await child.output();
  await fed;
  if (success) return stdout;
  throw new Error(`Cannot run ${program}: ${new TextDecoder().decode(stderr).trim()}`);
}

/** A program that gave up early leaves the pipe broken: its exit status tells more. */
async function feed(stdin: WritableStream<Uint8Array>, bytes: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(bytes);
    await writer.close();
  } catch {
    await writer.abort().catch(() => {});
  }
}

function owned(bytes: Uint8Array): Bytes {
  if (bytes.buffer instanceof ArrayBuffer && !(bytes instanceof Buffer)) {
    return bytes as Bytes;
  }
  return new Uint8Array(bytes);
}
