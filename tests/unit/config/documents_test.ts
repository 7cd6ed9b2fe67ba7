import assert from "node:assert/strict";
import { staleDocuments } from "../../../scripts/gen.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;

Deno.test("generated documents: those in the repository follow from their tables", () => {
  assert.deepEqual([...staleDocuments(ROOT).keys()], []);
});

Deno.test("generated documents: one that differs or is missing is found and named", async () => {
  const root = await Deno.makeTempDir();
  try {
    const options = "# T\n<!-- options:begin -->\nold\n<!-- options:end -->\nmore\n";
    for (const folder of ["docs", "nix", "deploy/helm/larder"]) {
      await Deno.mkdir(`${root}/${folder}`, { recursive: true });
    }
    await Deno.writeTextFile(`${root}/docs/options.md`, options);
    const marks = (name: string) => `<!-- ${name}:begin -->\n<!-- ${name}:end -->\n`;
    const moving = marks("ncps-aliases") + marks("ncps-foreign");
    await Deno.writeTextFile(`${root}/docs/moving-from-ncps.md`, moving);
    await Deno.writeTextFile(`${root}/docs/security.md`, marks("permissions"));

    await Deno.writeTextFile(`${root}/docs/observability.md`, marks("metrics"));
    const stale = staleDocuments(root);
    for (const [name, wanted] of stale) await Deno.writeTextFile(`${root}/${name}`, wanted);

    assert.deepEqual([...stale.keys()], [
      "docs/options.md",
      "docs/security.md",
      "docs/observability.md",
      "docs/larder.toml",
      "docs/moving-from-ncps.md",
      "deploy/helm/larder/alerts.yml",
      "nix/options.nix",
      "nix/service.nix",
    ]);
    assert.match(stale.get("docs/options.md") ?? "", /^# T\n[^]*--cache-priority[^]*\nmore\n$/);
    assert.deepEqual([...staleDocuments(root).keys()], []);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
