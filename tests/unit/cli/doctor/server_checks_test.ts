import assert from "node:assert/strict";
import { resolveSettings } from "../../../../src/config/settings.ts";
import { ServerClient } from "../../../../src/cli/client/server_client.ts";
import { checkProxyHeaders } from "../../../../src/cli/doctor/proxy_check.ts";
import {
  checkServer,
  lookAtServer,
  type ServerTarget,
} from "../../../../src/cli/doctor/server_check.ts";
import denoJson from "../../../../deno.json" with { type: "json" };
import { freePort } from "../../../support/free_port.ts";
import { inputsOf } from "../../../support/config_inputs.ts";

type Answers = Readonly<Record<string, (headers: Headers) => Response>>;

const LARDER: Answers = {
  "/healthz": () => new Response("ok\n"),
  "/pubkey": () => new Response("cache-1:own\n"),
  "/stats": () => statsOf("198.51.100.7"),
};

function statsOf(client: string, version = denoJson.version): Response {
  return Response.json({ version, client, size: { used_bytes: 1 } });
}

/** A server with these answers, as a target; any other path is 404. */
function served(answers: Answers) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const answer = answers[new URL(request.url).pathname];
    return answer?.(request.headers) ?? new Response(null, { status: 404 });
  });
  return { target: targetAt(server.addr.port), [Symbol.asyncDispose]: () => server.shutdown() };
}

function targetAt(port: number): ServerTarget {
  const url = `http://127.0.0.1:${port}`;
  const client = new ServerClient({ server: { kind: "http", url }, token: undefined });
  return { shown: "URL", client };
}

async function markOf(target: ServerTarget): Promise<string | undefined> {
  return checkServer(target, await lookAtServer(target))[0]?.mark;
}

const denied = () => new Response(null, { status: 401 });

for (
  const [what, answers, mark] of [
    ["a larder", LARDER, "ok"],
    ["a larder that wants a token", { ...LARDER, "/stats": denied, "/pubkey": denied }, "ok"],
    [
      "a larder that does not sign",
      { "/healthz": LARDER["/healthz"], "/stats": LARDER["/stats"] },
      "ok",
    ],
    ["an older larder", { ...LARDER, "/stats": () => statsOf("", "0.0.1") }, "warning"],
    ["another program", { "/healthz": () => new Response("fine") }, "failed"],
    ["another program's figures", { ...LARDER, "/stats": () => Response.json([]) }, "failed"],
  ] as const
) {
  Deno.test(`doctor: ${what} at the address is ${mark}`, async () => {
    await using server = served(answers as Answers);
    assert.equal(await markOf(server.target), mark);
  });
}

Deno.test("doctor: no server at the address is a warning that says so", async () => {
  const state = await lookAtServer(targetAt(freePort()));
  const [finding] = checkServer(targetAt(1), state);
  assert.equal(finding?.mark, "warning");
  assert.match(finding?.fact ?? "", /^stopped, or elsewhere: /);
});

const believing = (name: string) => ({
  "/stats": (headers: Headers) => statsOf(headers.get(name)?.replace("for=", "") ?? "198.51.100.7"),
});
const PROXIED = () => new Response("ok\n", { headers: { via: "1.1 nginx" } });

for (
  const [what, flag, answers, mark] of [
    ["no proxy", "", {}, "ok"],
    ["a proxy that larder does not trust", "", { "/healthz": PROXIED }, "warning"],
    ["a proxy that sets the address", "203.0.113.1", {}, "ok"],
    ["a client that is in the ranges", "198.51.100.0/24", {}, "not checked"],
    ["figures that need a token", "203.0.113.1", { "/stats": denied }, "not checked"],
    ["a forged X-Forwarded-For", "203.0.113.1", believing("x-forwarded-for"), "failed"],
    ["a forged Forwarded", "203.0.113.1", believing("forwarded"), "failed"],
  ] as const
) {
  Deno.test(`doctor: proxy headers with ${what} are ${mark}`, async () => {
    await using server = served({ ...LARDER, ...answers });
    const args = flag === "" ? [] : [`--server-trusted-proxies=${flag}`];
    const { settings } = resolveSettings(inputsOf({ args }));
    const state = await lookAtServer(server.target);
    assert.equal(state.kind, "running");
    if (state.kind !== "running") return;
    assert.equal((await checkProxyHeaders(settings, server.target, state)).mark, mark);
  });
}
