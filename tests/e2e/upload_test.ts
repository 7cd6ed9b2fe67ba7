import assert from "node:assert/strict";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, type NixObject, SHAPES } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

const TOKEN = "a-write-token-of-some-length";
/** Nobody listens there. */
const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:9" };
const FLAGS: LarderFlags = {
  ...NO_UPSTREAM,
  "cache-allow-put-verb": "true",
  "cache-put-token": `ci:${TOKEN}`,
};
const DRV = "/nix/store/n5glp21rsz314qssw9fbvfswgy3kc68f-hello-2.12.1.drv";

for (const compression of ["zstd", "xz", "none", "br", "bzip2", "gzip"]) {
  nixTest(`upload: nix copy pushes a closure in ${compression}, and Nix pulls it`, async () => {
    await using larder = await startLarder(FLAGS);
    await pushAndPull(larder, SHAPES["diamond"] ?? [], `compression=${compression}`);
  });
}

nixTest("upload: a store URL with every other setting is the same store", async () => {
  await using larder = await startLarder(FLAGS);
  const settings = [
    "compression=zstd",
    "want-mass-query=true",
    "priority=7",
    "parallel-compression=1",
  ];
  const more = ["write-nar-listing=true", "index-debug-info=true", "compression-level=1"];
  await pushAndPull(larder, SHAPES["self-reference"] ?? [], [...settings, ...more].join("&"));
});

nixTest("upload: a second push sends nothing again, and one with more sends the rest", async () => {
  await using larder = await startLarder({ ...FLAGS, "log-level": "debug" });
  using maker = new NixClient();
  const { top } = await addObjects(maker, [{ name: "leaf" }, {
    name: "top",
    references: ["leaf"],
  }]);
  await push(maker, larder, top);
  assert.equal(await puts(larder), 4);
  using again = new NixClient();
  const more = [{ name: "leaf" }, { name: "top", references: ["leaf"] }];
  const larger = await addObjects(again, [...more, { name: "roof", references: ["top"] }]);
  await push(again, larder, larger.top);
  assert.equal(await puts(larder), 6);
});

nixTest("upload: several nix copy at once of overlapping closures all succeed", async () => {
  await using larder = await startLarder(FLAGS);
  using makers = new DisposableStack();
  const shared = [{ name: "leaf" }, { name: "middle", references: ["leaf"] }];
  const tops = await Promise.all(Array.from({ length: 6 }, async (_, at) => {
    const maker = makers.use(new NixClient());
    const own = { name: `top-${at}`, references: ["middle", "leaf"] };
    return { maker, top: (await addObjects(maker, [...shared, own])).top };
  }));
  await Promise.all(tops.map(({ maker, top }) => push(maker, larder, top)));
  using puller = new NixClient();
  const trust = [(await (await fetch(`${larder.url}/pubkey`)).text()).trim()];
  for (const { top } of tops) await puller.realise(top, { from: [larder.url], trust });
});

nixTest("upload: nix log reads a build log that a client PUTs", async () => {
  await using larder = await startLarder(FLAGS);
  using maker = new NixClient();
  const { top } = await addObjects(maker, [{ name: "built", deriver: DRV }]);
  await push(maker, larder, top);
  const log = `/log/${DRV.slice("/nix/store/".length)}`;
  const answer = await fetch(`${larder.url}/upload${log}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: "unpacking\ninstalling\n",
  });
  assert.deepEqual([answer.status, await answer.text()], [201, "stored\n"]);
  using client = new NixClient();
  const said = await client.run("nix", ["log", "--store", larder.url, top]);
  assert.equal(said, "unpacking\ninstalling\n");
});

nixTest("upload: without the token, or without the option, nix copy says why", async () => {
  await using closed = await startLarder(NO_UPSTREAM);
  await using open = await startLarder(FLAGS);
  using maker = new NixClient();
  const { top } = await addObjects(maker, [{ name: "thing" }]);
  await assert.rejects(push(maker, closed, top), { message: /405/ });
  const anonymous = ["copy", "--to", `${open.url}/upload`, top];
  await assert.rejects(maker.run("nix", anonymous), { message: /401/ });
});

Deno.test("upload: without a write token the start warns, with one it does not", async () => {
  const lines = ["uploads need no token", "every upload is refused"];
  const warned = async (flags: LarderFlags) => {
    await using larder = await startLarder({ ...NO_UPSTREAM, ...flags });
    larder.kill("SIGTERM");
    await larder.ended;
    return larder.lines.map(({ msg }) => String(msg)).filter((msg) => lines.includes(msg));
  };
  const closed = { "cache-allow-put-verb": "true" };
  const key = generateSecretKey("builder-1").publicKey.text;
  const open = { ...closed, "cache-trusted-upload-key": key };
  const seen = [await warned({}), await warned(FLAGS), await warned(open), await warned(closed)];
  assert.deepEqual(seen, [[], [], lines.slice(0, 1), lines.slice(1)]);
});

nixTest("upload: with an upload key nix copy must sign, and the line says so", async () => {
  using maker = new NixClient();
  const key = await maker.makeKey("builder-1");
  await using larder = await startLarder({ ...FLAGS, "cache-trusted-upload-key": key.publicKey });
  const { top } = await addObjects(maker, [{ name: "thing" }]);
  await assert.rejects(push(maker, larder, top), {
    message: /422[^]*expected a signature of builder-1/,
  });
  await push(maker, larder, top, `secret-key=${key.secretPath}`);
  using puller = new NixClient();
  await puller.realise(top, { from: [larder.url], trust: [key.publicKey] });
});

nixTest(
  "upload: with an upload key and no token nix copy pushes signed paths, and no listing",
  async () => {
    using maker = new NixClient();
    const key = await maker.makeKey("builder-1");
    await using larder = await startLarder({
      ...NO_UPSTREAM,
      "cache-allow-put-verb": "true",
      "cache-trusted-upload-key": key.publicKey,
    });
    const { top } = await addObjects(maker, SHAPES["diamond"] ?? []);
    const { top: other } = await addObjects(maker, [{ name: "other" }]);
    const to = `${larder.url}/upload?compression=zstd&secret-key=${key.secretPath}`;
    await maker.run("nix", ["copy", "--to", to, top]);
    const listing = ["copy", "--to", `${to}&write-nar-listing=true`, other];
    await assert.rejects(maker.run("nix", listing), { message: /403/ });
    using puller = new NixClient();
    await puller.realise(top, { from: [larder.url], trust: [key.publicKey] });
  },
);

nixTest("upload: a client that does not trust larder's key takes no upload", async () => {
  await using larder = await startLarder(FLAGS);
  using maker = new NixClient();
  using puller = new NixClient();
  const { top } = await addObjects(maker, [{ name: "thing" }]);
  await push(maker, larder, top);
  const stranger = await puller.makeKey("stranger-1");
  await assert.rejects(puller.realise(top, { from: [larder.url], trust: [stranger.publicKey] }));
  const trust = [(await (await fetch(`${larder.url}/pubkey`)).text()).trim()];
  await puller.realise(top, { from: [larder.url], trust });
});

/** Pushes from one store and pulls into another, by larder's key alone. */
async function pushAndPull(
  larder: LarderProcess,
  objects: readonly NixObject[],
  settings: string,
): Promise<void> {
  using maker = new NixClient();
  using puller = new NixClient();
  const { top, paths } = await addObjects(maker, objects);
  await push(maker, larder, top, settings);
  const trust = [(await (await fetch(`${larder.url}/pubkey`)).text()).trim()];
  await puller.realise(top, { from: [larder.url], trust });
  assert.deepEqual(await puller.closureOf(top), paths);
}

async function push(
  client: NixClient,
  { url }: LarderProcess,
  path: string,
  settings = "compression=zstd",
): Promise<void> {
  using folder = tempFolder();
  const netrc = `${folder.path}/netrc`;
  Deno.writeTextFileSync(netrc, `machine ${new URL(url).hostname} login ci password ${TOKEN}\n`);
  const words = ["--netrc-file", netrc, "--to", `${url}/upload?${settings}`];
  await client.run("nix", ["copy", ...words, path]);
}

/** How many PUT requests the log has, once all of its lines are here. */
async function puts(larder: LarderProcess): Promise<number> {
  const id = crypto.randomUUID().slice(0, 8);
  const headers = { "x-request-id": id };
  await (await fetch(`${larder.url}/healthz`, { headers })).text();
  await larder.logged("request", ({ request_id }) => request_id === id);
  return larder.lines.filter(({ msg, method }) => msg === "request" && method === "PUT").length;
}
