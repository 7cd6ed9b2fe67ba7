import assert from "node:assert/strict";

const ROOT = new URL("../../../", import.meta.url);

interface Dependency {
  readonly isDynamic?: boolean;
  readonly code?: { readonly specifier: string };
}

interface Graph {
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly Dependency[];
  }[];
}

/** The modules that Deno reads for `main.ts`, without those that only types name. */
async function readGraph(): Promise<Graph> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", new URL("main.ts", ROOT).pathname],
    stderr: "null",
  }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** The modules that the module leads to, at once or, with `lazy`, also later. */
function reachedFrom({ modules }: Graph, start: string, lazy: boolean): ReadonlySet<string> {
  const known = new Map(
    modules.map(({ specifier, dependencies = [] }) => [specifier, dependencies]),
  );
  const reached = new Set([start]);
  for (const specifier of reached) {
    for (const { code, isDynamic = false } of known.get(specifier) ?? []) {
      if (code !== undefined && (lazy || !isDynamic)) reached.add(code.specifier);
    }
  }
  return reached;
}

Deno.test("a start loads no SDK and no command that it does not need", async () => {
  const graph = await readGraph();
  const ofServe = [...reachedFrom(graph, new URL("src/app/serve.ts", ROOT).href, false)];
  const ofMain = [...reachedFrom(graph, new URL("main.ts", ROOT).href, false)];
  const ever = [...reachedFrom(graph, new URL("main.ts", ROOT).href, true)];

  assert.ok(ever.length > 400, `${ever.length} modules: the graph was not read`);
  assert.deepEqual(
    ofServe.filter((name) => /@opentelemetry\/(sdk|resources)|ioredis|pg@/.test(name)),
    [],
  );
  assert.deepEqual(ofMain.filter((name) => /cli\/(warm|import|doctor)/.test(name)), []);
  // Deno parses it even where it is never loaded.
  assert.deepEqual(ever.filter((name) => name.includes("@aws-sdk")), []);
});
