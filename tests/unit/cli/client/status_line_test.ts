import assert from "node:assert/strict";
import { StatusLine } from "../../../../src/cli/client/status_line.ts";

Deno.test("status line: a terminal that says it has no columns shows the whole line", () => {
  for (const [columns, shown] of [[0, "3/9 paths  50.0 KiB"], [10, "3/9 paths"]] as const) {
    let written = "";
    const output = {
      writeError: (text: string) => void (written += text),
      clearErrorLine: () => undefined,
      errorColumns: () => columns,
    };
    {
      using _line = new StatusLine(output, (width) => {
        assert.equal(width, columns || 80);
        return "3/9 paths  50.0 KiB";
      });
    }
    assert.equal(written, shown);
  }
});
