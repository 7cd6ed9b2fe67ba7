import assert from "node:assert/strict";
import { DATABASE_AWAY, STORAGE_AWAY } from "../../../../src/base/failure.ts";
import { runLarder } from "../../../support/run_larder.ts";
import { testSocket } from "../../../support/test_socket.ts";

const HASH = "9l7x9qk0v78g2ns7xk46kqzyj8cxny0s";

type Answering = (request: Request) => Response;

function answering(answer: Answering, path?: string): AsyncDisposable & { readonly url: string } {
  const onListen = () => {};
  if (path !== undefined) {
    const server = Deno.serve({ path, onListen }, answer);
    return { url: `unix:${path}`, [Symbol.asyncDispose]: () => server.shutdown() };
  }
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, answer);
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { url, [Symbol.asyncDispose]: () => server.shutdown() };
}

for (
  const [status, hint, headers] of [
    [
      401,
      /wants an admin token \(401 Unauthorized\): give --token-file PATH, or set LARDER_TOKEN$/m,
    ],
    [403, /wants an admin token \(403 Forbidden\)/],
    [404, /has no such path; fetch it first: larder warm \S+-name$/m],
    [405, /does not allow this \(405 Method Not Allowed\)/],
    [302, /points elsewhere \(302 Found\): give its own address/, { location: "/other" }],
    [500, /answered 500 Internal Server Error: .*, request id a-1$/m, { "x-request-id": "a-1" }],
    [503, /answered 503 Service Unavailable: its log says why$/m, { "x-request-id": "%0a" }],
  ] as const
) {
  Deno.test(`server client: ${status} says what to do, for each path`, async () => {
    await using server = answering(() => new Response("x\n", { status, headers: headers ?? {} }));
    const words = [`${HASH}-name`, `/nix/store/${"0".repeat(32)}-name`];

    const { status: ended, out, err } = await runLarder(["pin", ...words, "--server", server.url]);

    assert.deepEqual([ended, out], [1, ""]);
    assert.match(err, /^larder: 2 of 2 not pinned:\n/);
    for (const word of words) assert.ok(err.includes(`  ${word}: `), err);
    assert.match(err, hint);
  });
}

for (
  const words of [
    ["pin", HASH],
    ["pin", "--name=host", "--keep=1", HASH],
    ["unpin", HASH],
    ["unpin", "--name=host"],
    ["explain", HASH],
    ["plan", HASH],
    ["warm", HASH, "--pin"],
  ]
) {
  Deno.test(`server client: larder ${words.join(" ")} says that the database is away`, async () => {
    await using server = answering(() => new Response(`${DATABASE_AWAY}\n`, { status: 503 }));
    const { status, err } = await runLarder([...words, "--server", server.url]);
    assert.equal(status, 1);
    assert.match(err, /the database does not answer; try again in a moment$/m);
  });
}

Deno.test("server client: a run that cannot begin says that the storage is away", async () => {
  await using server = answering(() => new Response(`${STORAGE_AWAY}\n`, { status: 503 }));
  const { status, err } = await runLarder(["gc", "--server", server.url]);
  assert.equal(status, 1);
  assert.match(err, /the storage does not answer; try again in a moment$/m);
});

Deno.test("server client: a file as larder token create prints it gives its token", async () => {
  const { out } = await runLarder(["token", "create", "alice", "--role=admin"]);
  const token = out.trimEnd().slice("alice:".length);
  const sent: (string | null)[] = [];
  await using server = answering(({ headers }) => {
    sent.push(headers.get("authorization"));
    return new Response("[]");
  });
  const files = { "/named": out, "/bare": `${token}\n` };
  const words = ["pins", "--server", server.url];
  for (const path of Object.keys(files)) {
    assert.equal((await runLarder([...words, "--token-file", path], { files })).status, 0, path);
  }
  await runLarder(words, { env: { LARDER_TOKEN: out.trimEnd() } });
  assert.deepEqual(sent, Array(3).fill(`Bearer ${token}`));
});

Deno.test("server client: an absent server is named once, with what to do", async () => {
  for (const url of ["http://127.0.0.1:1", "unix:/nowhere/socket"]) {
    const words = ["unpin", HASH, "0".repeat(32), `--server=${url}`];

    const { status, err } = await runLarder(words);

    assert.equal(status, 1);
    assert.match(err, /^larder: Cannot reach \S+: [^\n]*; is larder running\? [^\n]*--server\n$/);
    assert.ok(err.includes(url), err);
  }
});

Deno.test("server client: a server without TLS is running, and --server is said", async () => {
  await using server = answering(() => new Response("[]"));
  const url = server.url.replace("http:", "https:");

  const { status, err } = await runLarder(["pins", "--server", url]);

  assert.equal(status, 1);
  assert.equal(
    err,
    `larder: Cannot reach ${url}: it does not speak HTTPS; give --server http://\n`,
  );
});

Deno.test("server client: a token is sent, and never said", async () => {
  const seen: (string | null)[] = [];
  await using server = answering(({ headers }) => {
    seen.push(headers.get("authorization"));
    return new Response(null, { status: 403 });
  });
  const env = { LARDER_SERVER: server.url };
  const given = [
    await runLarder(["pin", HASH, "--token", "hush"], { env }),
    await runLarder(["pin", HASH], { env: { ...env, LARDER_TOKEN: "hush" } }),
    await runLarder(["pin", HASH, "--token-file=/t"], { env, files: { "/t": "hush\n" } }),
    await runLarder(["pin", HASH], {
      env: { ...env, LARDER_TOKEN_FILE: "/t" },
      files: { "/t": "hush\n" },
    }),
    await runLarder(["pin", HASH], { env }),
  ];

  assert.deepEqual(seen, [...Array(4).fill("Bearer hush"), null]);
  for (const { status, out, err } of given) {
    assert.equal(status, 1);
    assert.ok(!`${out}${err}`.includes("hush"));
  }
  assert.match(given[0]?.err ?? "", /does not accept this token \(403 Forbidden\)/);
  assert.match(given[4]?.err ?? "", /wants an admin token/);
});

Deno.test("server client: a wrong token, and a lesser one, say which to set", async () => {
  const challenges = {
    "hush": [401, 'Basic realm="larder"'],
    "lesser": [403, 'Bearer realm="larder", error="insufficient_scope", scope="admin"'],
  } as const;
  await using server = answering(({ headers }) => {
    const token = headers.get("authorization")?.slice("Bearer ".length) as "hush" | "lesser";
    const [status, challenge] = challenges[token];
    return new Response(null, { status, headers: { "www-authenticate": challenge } });
  });
  const said = async (token: string, ...words: readonly string[]) =>
    (await runLarder([...words, "--server", server.url, "--token", token])).err;
  const ways = "with --token-file PATH, or set LARDER_TOKEN\n";
  const unknown = "the server does not know this token (401 Unauthorized): give";

  assert.ok((await said("hush", "pin", HASH)).endsWith(`${unknown} an admin token ${ways}`));
  assert.ok((await said("hush", "pins")).endsWith(`${unknown} an admin token ${ways}`));
  assert.ok((await said("hush", "warm", HASH)).includes(`${unknown} a read token ${ways}`));
  const lacks = `this token lacks the role admin (403 Forbidden): give an admin token ${ways}`;
  assert.ok((await said("lesser", "pin", HASH)).endsWith(lacks));
  assert.equal(await said("lesser", "gc"), `larder: ${lacks}`);
});

Deno.test("server client: a redirect is not followed, and sees no token", async () => {
  let followed = 0;
  await using other = answering(() => {
    followed++;
    return new Response("[]");
  });
  await using server = answering(() => Response.redirect(`${other.url}/pins/closures`, 307));

  const { status } = await runLarder(["pins", "--server", server.url, "--token", "hush"]);

  assert.deepEqual([status, followed], [1, 0]);
});

Deno.test("server client: a unix socket is as good as a port", async () => {
  using socket = testSocket();
  const seen: string[] = [];
  await using server = answering(({ method, url }) => {
    seen.push(`${method} ${new URL(url).pathname}`);
    return new Response("x\n");
  }, socket.path);

  const { status, out } = await runLarder(["pin", HASH, "--server", server.url]);

  assert.deepEqual([status, out], [0, `pinned ${HASH}\n`]);
  assert.deepEqual(seen, [`POST /pin/${HASH}.narinfo`, "GET /stats"]);
});

Deno.test("server client: a server below a path of a proxy is reached there", async () => {
  const seen: string[] = [];
  await using server = answering(({ url }) => {
    seen.push(new URL(url).pathname);
    return new Response("x\n");
  });

  await runLarder(["unpin", HASH, `--server=${server.url}/cache/`]);

  assert.deepEqual(seen, [`/cache/pin/${HASH}.narinfo`]);
});

for (
  const url of ["localhost:8501", "ftp://x", "unix:", "http://x?y=1", "http://x#y", "http://a:b@x"]
) {
  Deno.test(`server client: --server ${url} is refused before anything is sent`, async () => {
    const { status, out, err } = await runLarder(["pins", "--server", url]);

    assert.deepEqual([status, out], [2, ""]);
    assert.match(err, /^larder: --server: got ".*", expected a URL [^\n]*\n$/);
    assert.ok(!err.includes("a:b"), err);
  });
}
