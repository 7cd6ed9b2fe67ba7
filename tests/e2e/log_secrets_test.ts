import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const SECRETS = ["netrc-pa55word", "url-pa55word", "query-t0ken", "bearer-t0ken", "s1gnature"];

Deno.test("log: a full run at debug tells no password and no token", async () => {
  using folder = tempFolder();
  const netrc = `${folder.path}/netrc`;
  Deno.writeTextFileSync(netrc, `machine 127.0.0.1 login me password ${SECRETS[0]}\n`);
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const { host } = new URL(upstream.url);
  // As caches in front of S3 do. Nobody listens there, and fetch does not block the port.
  await using moved = await fakeUpstream({ stored: true });
  const location = `http://127.0.0.1:2/x?X-Amz-Signature=${SECRETS[4]}`;
  moved.onRequest = ({ path }) =>
    path.endsWith(".narinfo")
      ? new Response(null, { status: 302, headers: { location } })
      : undefined;
  await using larder = await startLarder({
    "cache-upstream-url": [upstream.url, `http://me:${SECRETS[1]}@127.0.0.1:2`, moved.url],
    "otel-enabled": "true",
    "cache-upstream-public-key": upstream.publicKey,
    "netrc-file": netrc,
    "log-level": "debug",
  });
  const ask = async (path: string, method = "GET") => {
    const headers = { authorization: `Bearer ${SECRETS[3]}` };
    const answer = await fetch(larder.url + path, { method, headers });
    return await answer.text();
  };
  const narinfo = await ask(`/${object.storePathHash}.narinfo?token=${SECRETS[2]}`);
  await ask(`/${/^URL: (.*)$/m.exec(narinfo)?.[1]}?token=${SECRETS[2]}`);
  await larder.logged("nar cached successfully");
  await ask(`/${"0".repeat(32)}.narinfo`);
  await ask(`/pin/${object.storePathHash}.narinfo`, "POST");
  await ask(`/nothing?token=${SECRETS[2]}`, "PATCH");
  larder.kill("SIGTERM");
  await larder.ended;
  const log = JSON.stringify(larder.lines);
  assert.ok(log.includes("http://127.0.0.1:2/x?(hidden)"), "where it was sent to is told");
  assert.ok(log.includes(host) && log.includes('"level":"debug"'), "it is a full run");
  for (const secret of SECRETS) {
    assert.ok(!log.includes(secret), secret);
    assert.ok(!log.includes(btoa(`me:${secret}`)), secret);
  }
});
