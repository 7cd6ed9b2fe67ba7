// Clients that connect to a port of 127.0.0.1 and reset at once: PORT PER_SECOND COUNT. Runs as a
// process of its own with `--allow-ffi`, because only libc can set SO_LINGER to zero.
const AF_INET = 2;
const SOCK_STREAM = 1;
const LINUX = Deno.build.os === "linux";
const SOL_SOCKET = LINUX ? 1 : 0xffff;
const SO_LINGER = LINUX ? 13 : 0x80;

const libc = Deno.dlopen(LINUX ? "libc.so.6" : "libSystem.dylib", {
  socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
  setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "u32"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
});

const [port = 0, perSecond = 0, count = 0] = Deno.args.map(Number);
/** Linger is on, for no time at all: closing sends a reset. */
const LINGER = new Uint8Array(Int32Array.of(1, 0).buffer);
// macOS has the length of the address in its first byte.
const FAMILY = LINUX ? [AF_INET, 0] : [16, AF_INET];
const ADDRESS = Uint8Array.of(...FAMILY, port >> 8, port & 255, 127, 0, 0, 1, ...new Uint8Array(8));

for (let sent = 0; sent < count; sent++) {
  reset();
  if (perSecond > 0) await new Promise((resolve) => setTimeout(resolve, 1_000 / perSecond));
}

function reset(): void {
  const { socket, setsockopt, connect, close } = libc.symbols;
  const client = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(client, SOL_SOCKET, SO_LINGER, LINGER, LINGER.length);
  if (connect(client, ADDRESS, ADDRESS.length) !== 0) throw new Error("Cannot connect");
  close(client);
}
