import assert from "node:assert/strict";
import { textAnswer } from "../../src/http/message/message.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { TestListener } from "../support/test_listener.ts";

const TEXTS: Readonly<Record<string, string>> = {
  "no text": "",
  "ASCII": "StorePath: a\n",
  "two bytes a character": "é".repeat(700),
  "some of three and four": `a${"€😀".repeat(5_000)}`,
  "more than one write": "ü".repeat(40_000),
};

for (const [name, text] of Object.entries(TEXTS)) {
  Deno.test(`text answer: ${name} has the length that its bytes have`, async () => {
    const parts = { status: 200, type: "text/plain", lifetime: "never" } as const;
    await using server = new TestListener({
      handle: ({ method }) => Promise.resolve(textAnswer(text, method === "HEAD", parts)),
    });

    const { headers, body, complete } = await rawRequest(server.port, requestText("GET", "/"));

    assert.deepEqual([new TextDecoder().decode(body), complete], [text, true]);
    const head = await rawRequest(server.port, requestText("HEAD", "/"));
    assert.equal(head.headers.get("content-length"), headers.get("content-length"));
  });
}
