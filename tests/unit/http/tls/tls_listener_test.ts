import assert from "node:assert/strict";
import { TlsListener, type TlsListenerDeps } from "../../../../src/http/tls/tls_listener.ts";
import { Answer, type ClientRequest } from "../../../../src/http/message/message.ts";
import { RELAY_LIMITS, type RelayLimits } from "../../../../src/http/tls/relay.ts";
import {
  HttpServer,
  type HttpServerDeps,
  type HttpServerLimits,
} from "../../../../src/http/server/http_server.ts";
import { clock, files, playRuntime } from "../../../../src/runtime/current.ts";
import { SYSTEM_FILES } from "../../../../src/runtime/files.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { eventually } from "../../../support/eventually.ts";
import { writeAll } from "../../../support/steady_port.ts";
import { tempFolder } from "../../../support/temp_folder.ts";
import { type Program, programsMissing, testUnless } from "../../../support/program.ts";
import { OwnCertificate } from "../../../support/tls_front.ts";

const PLACE = { hostname: "127.0.0.1", port: 0 };
const LAST_REQUEST = new TextEncoder().encode(
  "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
);

tlsTest("another certificate is taken up; open connections go on with the one before", async () => {
  await using scene = await Scene.open();
  using open = await scene.connect(scene.first);
  assert.ok(await isAnswered(open));

  scene.put(scene.second);
  await eventually("it is replaced", () => scene.says("certificate replaced"));
  const isShown = (certificate: OwnCertificate) => async () => {
    try {
      (await scene.connect(certificate)).close();
      return true;
    } catch {
      return false;
    }
  };
  for (let shown = 0; shown < 10;) {
    await eventually("the new one is shown", isShown(scene.second));
    shown = await isShown(scene.first)() ? 0 : shown + 1;
  }
  assert.ok(await isAnswered(open), "the old connection lives");
  assert.deepEqual(scene.used, [scene.first.pems.cert, scene.second.pems.cert]);
});

tlsTest("a client's address is its own, with other clients beside it", async () => {
  const peers: (string | undefined)[] = [];
  const handle = ({ peer }: ClientRequest) => {
    peers.push(peer);
    return Promise.resolve(new Answer(peer ?? "", 200, {}));
  };
  await using scene = await Scene.open({}, { handle });
  const addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
  const answers = await Promise.all(
    [...addresses, ...addresses].map((address) => scene.askFrom(address)),
  );
  assert.deepEqual(answers, [...addresses, ...addresses]);
  assert.deepEqual(new Set(peers), new Set(addresses));
});

tlsTest("a broken pair is logged once, and the one before stays", async () => {
  await using scene = await Scene.open();
  const broken = [
    () => scene.putPems({ cert: "nonsense", key: scene.first.pems.key }),
    () => scene.putPems({ cert: scene.second.pems.cert, key: scene.first.pems.key }),
    () => Deno.removeSync(scene.files.certPath),
  ];
  for (const [index, harm] of broken.entries()) {
    harm();
    await eventually("it is said", () => scene.countOf("certificate replacement failed") > index);
    using connection = await scene.connect(scene.first);
    assert.ok(await isAnswered(connection));
  }
  scene.put(scene.first);
  await eventually("it is usable", () => scene.says("certificate files are usable again"));
  assert.ok(!scene.says("certificate replaced"));
  scene.put(scene.second);
  await eventually("it is replaced", () => scene.says("certificate replaced"));
  assert.equal(scene.countOf("certificate replacement failed"), broken.length);
  using _connection = await scene.connect(scene.first, scene.second);
});

tlsTest("half a hello and silence is closed, and logged", async () => {
  await using scene = await Scene.open({ handshakeMs: 100 });
  using silent = await Deno.connect(scene.listener.place);
  await silent.write(Uint8Array.from([0x16, 3, 1, 2, 0, 1]));
  assert.equal(await silent.read(new Uint8Array(100)), null);
  // The relay's thread says so beside the end of the connection.
  await eventually("it is logged", () => scene.says("connections closed"));
});

tlsTest("a client without a request makes room, whether its handshake is over or not", async () => {
  await using scene = await Scene.open({ silentMax: 5 }, { connectionsMax: 10 });
  await using stack = new AsyncDisposableStack();
  const silent: Deno.Conn[] = [];
  for (let count = 0; count < 10; count++) {
    silent.push(stack.use(await Deno.connect(scene.listener.place)));
    stack.use(await scene.connect(scene.first).catch(() => undefined));
  }
  await eventually("another is answered", async () => {
    using connection = await scene.connect(scene.first).catch(() => undefined);
    return connection !== undefined && await isAnswered(connection);
  });
  // The first one went for those that came later, and its socket with it.
  assert.equal(await silent[0]?.read(new Uint8Array(1)), null);
});

tlsTest("of one address the oldest that takes nothing goes, and its sockets with it", async () => {
  const asked = Promise.withResolvers<void>();
  const handle = ({ url }: ClientRequest) => {
    asked.resolve();
    return Promise.resolve(new Answer(url.endsWith("/large") ? LARGE : "", 200, {}));
  };
  const shares = { perAddressMax: 1, sweepEveryMs: 20, stalledMs: 100 };
  await using scene = await Scene.open({}, { ...shares, handle });
  using stalled = await scene.connect(scene.first);
  await writeText(stalled, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  await asked.promise;
  await eventually("another has its place", async () => {
    using other = await scene.connect(scene.first).catch(() => undefined);
    return other !== undefined && await isAnswered(other).catch(() => false);
  });
  // The stalled client has neither read nor left.
  assert.ok(await clock.within(scene.listener.ended().then(() => true), 60_000));
});

tlsTest("a client that takes nothing is closed, with bytes in flight to it", async () => {
  await using scene = await Scene.open({ stallMs: 100 });
  using connection = await scene.connect(scene.first);
  await writeText(connection, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  await eventually("it is closed", () => scene.says("connections closed"));
});

tlsTest("an answer that takes its time reaches a client that has ended its side", async () => {
  await using scene = await Scene.open({}, {
    sweepEveryMs: 20,
    async handle({ hungUp }) {
      await new Promise((noticed) => hungUp?.addEventListener("abort", noticed));
      return new Answer("late", 200, {});
    },
  });
  using connection = await scene.connect(scene.first);
  const answered = isAnswered(connection);
  await connection.closeWrite();
  assert.ok(await answered);
});

tlsTest("a refused body does not cost its client the answer", async () => {
  await using scene = await Scene.open();
  using connection = await scene.connect(scene.first);
  await writeText(connection, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n");
  await writeAll(connection, LARGE.subarray(0, 20_000_000));
  assert.match(await firstLineOf(connection), /^HTTP\/1\.1 200 OK/);
});

tlsTest("at its end it answers the requests in flight, and no others", async () => {
  await using scene = await Scene.open();
  const open = await scene.connect(scene.first);
  let isOver = false;
  const over = scene.listener.ended().then(() => isOver = true);
  await eventually("nobody else is taken", async () => {
    try {
      (await Deno.connect(scene.listener.place)).close();
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(await isAnswered(open) && !isOver);
  open.close();
  await over;
});

tlsTest("a change of the certificate drops no client that comes in meanwhile", async () => {
  await using scene = await Scene.open();
  const pairs = [scene.second, scene.first];
  for (let change = 0; change < 6; change++) {
    scene.put(pairs[change % 2] ?? scene.first);
    while (scene.countOf("certificate replaced") <= change) {
      using connection = await scene.connect(scene.first, scene.second);
      assert.ok(await isAnswered(connection));
    }
  }
});

tlsTest("a pair that is broken at the start is a plain sentence", async () => {
  using folder = tempFolder();
  await using server = scene();
  const files = { certPath: `${folder.path}/cert`, keyPath: `${folder.path}/key` };
  const log = createLogger("error", NOWHERE);
  const open = () => TlsListener.open({ place: PLACE, files, server, log, nowMs: Date.now });
  await assert.rejects(open, {
    name: "Failure",
    message: /^Cannot use --server-tls-cert .*\/cert: .*; expected a PEM file with a certificate$/,
  });
  Deno.writeTextFileSync(files.certPath, "no certificate");
  await assert.rejects(open, {
    name: "Failure",
    message: /^Cannot use --server-tls-key .*\/key: .*; expected a PEM file with its private key$/,
  });
  Deno.writeTextFileSync(files.keyPath, "no key");
  await assert.rejects(open, {
    name: "Failure",
    message: /^Cannot use the certificate .* with the key /,
  });
});

tlsTest("a path that becomes a FIFO is named, and every connection goes on", async () => {
  await using scene = await Scene.open();
  Deno.removeSync(scene.files.certPath);
  assert.ok(new Deno.Command("mkfifo", { args: [scene.files.certPath] }).outputSync().success);
  await eventually("it is named", () => scene.says("certificate replacement failed"));
  using connection = await scene.connect(scene.first);
  assert.ok(await isAnswered(connection));

  Deno.removeSync(scene.files.certPath);
  scene.put(scene.second);
  await eventually("it is replaced", () => scene.says("certificate replaced"));
}, "mkfifo");

tlsTest("a file system that hangs stops no connection, and one read waits for it", async () => {
  await using scene = await Scene.open();
  const hanging = Promise.withResolvers<void>();
  let reads = 0;
  const hung = {
    ...files,
    stat: async (path: string) => {
      reads++;
      await hanging.promise;
      return await Deno.stat(path);
    },
  };
  const played = playRuntime({ files: hung });
  try {
    await eventually("it is named", () => scene.says("certificate replacement failed"));
    for (let count = 0; count < 3; count++) {
      using connection = await scene.connect(scene.first);
      assert.ok(await isAnswered(connection));
    }
    assert.equal(reads, 1);
    await assert.rejects(
      TlsListener.open({ ...scene.deps, readMaxMs: 10 }),
      /Cannot read \S+cert\.pem and \S+key\.pem: the file system did not answer within 1 second/,
    );
  } finally {
    played[Symbol.dispose]();
    hanging.resolve();
  }
  scene.put(scene.second);
  await eventually("it is replaced", () => scene.says("certificate replaced"));
});

/** More than lies between two ends of a connection. */
const LARGE = new Uint8Array(50_000_000);

const NOWHERE = { write() {} };

function scene(options: ServerOptions = {}): HttpServer {
  const parts = {
    handle: ({ url }: ClientRequest) =>
      Promise.resolve(new Answer(url.endsWith("/large") ? LARGE : "", 200, {})),
    refuse: ({ status }: { readonly status: number }) => new Answer("", status, {}),
    log: createLogger("error", NOWHERE),
    nowMs: Date.now,
    connectionsMax: 100,
    perAddressMax: Infinity,
    ...options,
  };
  return new HttpServer(parts, parts);
}

type ServerOptions = Partial<HttpServerDeps & HttpServerLimits>;

/** A server with the first of two certificates in its files. */
class Scene implements AsyncDisposable {
  readonly first = new OwnCertificate();
  readonly second = new OwnCertificate();
  readonly #folder = tempFolder();
  readonly files = {
    certPath: `${this.#folder.path}/cert.pem`,
    keyPath: `${this.#folder.path}/key.pem`,
  };
  /** The certificates that came into use. */
  readonly used: string[] = [];
  readonly #said: string[] = [];
  readonly #server: HttpServer;
  /** Reads of the files that are not over. */
  readonly #reads = new Set<Promise<unknown>>();
  readonly #played = playRuntime({
    files: {
      ...SYSTEM_FILES,
      stat: (path: string) => this.#noted(SYSTEM_FILES.stat(path)),
      readTextFile: (path: string) => this.#noted(SYSTEM_FILES.readTextFile(path)),
    },
  });
  #listener: TlsListener | undefined;

  private constructor(options: ServerOptions) {
    this.#server = scene(options);
  }

  static async open(
    limits: Partial<RelayLimits> = {},
    options: ServerOptions = {},
  ): Promise<Scene> {
    const scene = new Scene(options);
    scene.put(scene.first);
    const relay = { limits: { ...RELAY_LIMITS, ...limits } };
    scene.#listener = await TlsListener.open({ ...scene.deps, relay });
    return scene;
  }

  get deps(): TlsListenerDeps {
    return {
      place: PLACE,
      files: { ...this.files, certificateUsed: (pem) => void this.used.push(pem) },
      server: this.#server,
      log: createLogger("info", { write: (line) => void this.#said.push(JSON.parse(line).msg) }),
      nowMs: Date.now,
      checkEveryMs: 20,
      readMaxMs: 1_000,
    };
  }

  get listener(): TlsListener {
    assert.ok(this.#listener);
    return this.#listener;
  }

  put(certificate: OwnCertificate): void {
    this.putPems(certificate.pems);
  }

  putPems({ cert, key }: OwnCertificate["pems"]): void {
    Deno.writeTextFileSync(this.files.certPath, cert);
    Deno.writeTextFileSync(this.files.keyPath, key);
  }

  /** Throws when none of those vouches for the server. */
  async connect(...trusted: readonly OwnCertificate[]): Promise<Deno.TlsConn> {
    const caCerts = trusted.map(({ pems }) => pems.cert);
    const connection = await Deno.connectTls({ ...this.listener.place, caCerts });
    try {
      await connection.handshake();
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** The body of the answer that a client of this address gets; OpenSSL can choose its own. */
  async askFrom(address: string): Promise<string> {
    const { hostname, port } = this.listener.place;
    const client = new Deno.Command("openssl", {
      args: ["s_client", "-quiet", "-bind", `${address}:0`, "-connect", `${hostname}:${port}`],
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = client.stdin.getWriter();
    await writer.write(LAST_REQUEST);
    const { stdout } = await client.output();
    await writer.close().catch(() => undefined);
    return new TextDecoder().decode(stdout).split("\r\n\r\n")[1] ?? "";
  }

  #noted<Value>(read: Promise<Value>): Promise<Value> {
    this.#reads.add(read);
    const over = () => void this.#reads.delete(read);
    read.then(over, over);
    return read;
  }

  countOf(msg: string): number {
    return this.#said.filter((one) => one === msg).length;
  }

  says(msg: string): boolean {
    return this.countOf(msg) > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener?.[Symbol.dispose]();
    // A look at the files may have begun before. It reads one after the other.
    do {
      await Promise.allSettled(this.#reads);
      await clock.turn();
    } while (this.#reads.size > 0);
    this.#played[Symbol.dispose]();
    await this.#server[Symbol.asyncDispose]();
    for (const owned of [this.first, this.second, this.#folder]) owned[Symbol.dispose]();
  }
}

async function isAnswered(connection: Deno.Conn): Promise<boolean> {
  await writeText(connection, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return await firstLineOf(connection) === "HTTP/1.1 200 OK";
}

async function writeText(connection: Deno.Conn, text: string): Promise<void> {
  await writeAll(connection, new TextEncoder().encode(text));
}

async function firstLineOf(connection: Deno.Conn): Promise<string> {
  const bytes = new Uint8Array(1_000);
  const read = await connection.read(bytes) ?? 0;
  return new TextDecoder().decode(bytes.subarray(0, read)).split("\r\n")[0] ?? "";
}

function tlsTest(name: string, fn: () => Promise<void>, ...others: readonly Program[]): void {
  testUnless(programsMissing("openssl", ...others), `TLS: ${name}`, fn);
}
