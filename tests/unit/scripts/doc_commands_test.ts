import assert from "node:assert/strict";
import { missingLines, readFences, shownToFail, stepsOf } from "../../support/doc_steps.ts";

const PAGE = `# Page

\`\`\`sh
one
two
\`\`\`

* A list

  \`\`\`console
  $ larder pin \\
      ./result
  pinned abc
  $ larder unpin x
  larder: expected a store path
  \`\`\`

\`\`\`sh not-run="needs systemd"
systemctl
\`\`\`

\`\`\`text file="/etc/nix/netrc"
machine
\`\`\`

\`\`\`nix
{ }
\`\`\`
`;

Deno.test("document commands: scripts, commands of a console and files are steps", () => {
  const steps = readFences(PAGE).flatMap(stepsOf);
  assert.deepEqual(steps.map(({ line, kind, text }) => [line, kind, text]), [
    [3, "script", "one\ntwo\n"],
    [11, "command", "larder pin \\\n    ./result"],
    [14, "command", "larder unpin x"],
    [22, "file", "machine\n"],
  ]);
  assert.deepEqual(steps.map(shownToFail), [false, false, true, false]);
});

Deno.test("document commands: a block that no test runs says why", () => {
  const reasons = readFences(PAGE).map(({ notRun }) => notRun);
  assert.deepEqual(reasons.filter((reason) => reason !== undefined), ["needs systemd"]);
});

Deno.test("document commands: figures may differ from the page, words may not", () => {
  const printed = `pinned ${"a".repeat(32)}-editor-9.1\nfreed 12.5 MiB: 3 paths\n`;
  assert.deepEqual(missingLines([`pinned ${"b".repeat(32)}-editor-9.1`], printed), []);
  assert.deepEqual(missingLines(["freed  5.7 MiB: 1 paths"], printed), []);
  assert.deepEqual(missingLines(["freed 5.7 MiB: 1 path"], printed), ["freed 5.7 MiB: 1 path"]);
});
