import { dirname } from "node:path";
import type { DirectoryUpstream } from "./directory_upstream.ts";
import { CODE_ROOT } from "./doc_programs.ts";
import { DocSandbox } from "./doc_sandbox.ts";
import {
  type Fence,
  missingLines,
  readFences,
  shownToFail,
  type Step,
  stepsOf,
} from "./doc_steps.ts";
import type { DocWorld } from "./doc_world.ts";
import { NginxCache } from "./nginx_cache.ts";
import { ncpsStorage } from "./ncps_storage.ts";
import { storePathOf } from "./nix_store_objects.ts";

/** Steps that a page presumes on the machine, beside a running larder. */
const PRESUMED: Readonly<Record<string, (sandbox: DocSandbox, world: DocWorld) => Promise<void>>> =
  {
    "docs/commands.md": async (sandbox) => sandbox.linkTo(storePathOf("editor-9.1")),
    "docs/copying-caches.md": async (sandbox, { folder, upstream }) => {
      await sandbox.run(`cp -r ${folder} ${sandbox.root}/media/stick`);
      Deno.writeTextFileSync(`${sandbox.home}/release-paths`, `${storePathOf("zlib-1.3")}\n`);
      await sandbox.run("larder warm ./result");
      await fillNginxCache(`${sandbox.root}/var/cache/nginx/nix`, upstream);
    },
    "docs/moving-from-ncps.md": async (sandbox) => {
      using storage = await ncpsStorage("whole");
      const target = `${sandbox.root}/var/lib/ncps`;
      await sandbox.run(`cp -r ${storage.folder} ${target}; mkdir -p ${target}/db
        cp ${storage.databasePath} ${target}/db; mkdir -p ${sandbox.root}/etc/ncps`);
      const database = "  database-url: sqlite:/var/lib/ncps/db/db.sqlite\n";
      const settings = `cache:\n  hostname: ncps.example.org\n  max-size: 5G\n${database}`;
      Deno.writeTextFileSync(`${sandbox.root}/etc/ncps/config.yaml`, settings);
    },
    "docs/uploading.md": async ({ nix }, { upstream }) => {
      const options = { from: [upstream.url], trust: [upstream.publicKey] };
      await nix.copyFrom(storePathOf("hello-2.12.2"), options);
    },
  };

/** Lets a real nginx cache all that an upstream has. */
async function fillNginxCache(target: string, upstream: DirectoryUpstream): Promise<void> {
  await using nginx = await NginxCache.open(upstream.url);
  for (const path of upstream.paths()) {
    const answer = await fetch(`http://127.0.0.1:${nginx.port}${path}`);
    await answer.bytes();
  }
  Deno.mkdirSync(dirname(target), { recursive: true });
  const { success } = await new Deno.Command("cp", { args: ["-r", nginx.cacheFolder, target] })
    .output();
  if (!success) throw new Error(`Cannot copy ${nginx.cacheFolder}`);
}

/** A block of a page that is no command, or that no test can run. */
export interface LeftOut {
  readonly place: string;
  readonly reason: string;
}

/** A step that went as the page says. */
export interface RanStep {
  readonly place: string;
  readonly tookMs: number;
}

/** The steps of a page, and the blocks that it leaves out. */
export function readPage(page: string): { steps: readonly Step[]; leftOut: readonly LeftOut[] } {
  const fences = readFences(Deno.readTextFileSync(CODE_ROOT + page));
  return {
    steps: fences.flatMap(stepsOf),
    leftOut: fences.filter(isLeftOut).map(({ line, notRun }) => ({
      place: `${page}:${line}`,
      reason: notRun ?? "",
    })),
  };
}

/** Runs the steps of a page in order. Throws at the first that is not as the page says. */
export async function runPage(
  page: string,
  world: DocWorld,
  ran: (step: RanStep) => void = () => undefined,
): Promise<void> {
  const { steps } = readPage(page);
  if (steps.length === 0) return;
  await using sandbox = new DocSandbox(world);
  await sandbox.run("larder serve");
  await PRESUMED[page]?.(sandbox, world);
  const done = `${sandbox.root}/done`;
  const script = steps.map((step, at) => scriptOf(step, `${sandbox.root}/out-${at}`, sandbox));
  try {
    await sandbox.run(["", ...script].map((text) => `${text}\ndate +%s%N >>${done}`).join("\n"));
  } catch (error) {
    const failed = steps[timesIn(done).length - 1];
    throw new Error(`${page}:${failed?.line}: ${failed?.text.trim()}\n${error}`);
  }
  const times = timesIn(done);
  for (const [at, { line, shown }] of steps.entries()) {
    ran({ place: `${page}:${line}`, tookMs: (times[at + 1] ?? 0) - (times[at] ?? 0) });
    if (shown.length === 0) continue;
    const printed = Deno.readTextFileSync(`${sandbox.root}/out-${at}`);
    const missing = missingLines(shown, printed);
    if (missing.length > 0) {
      throw new Error(`${page}:${line}: shows\n${missing.join("\n")}\nbut it prints\n${printed}`);
    }
  }
}

function scriptOf(step: Step, output: string, sandbox: DocSandbox): string {
  const { kind, path, text } = step;
  if (kind === "file") {
    sandbox.write(path ?? "", text);
    return ":";
  }
  const local = sandbox.localised(text);
  if (kind === "script") return local;
  const command = `{ ${local}\n} >${output} 2>&1`;
  return shownToFail(step)
    ? `if ${command}; then echo "It succeeds: $(cat ${output})" >&2; exit 1; fi`
    : `${command} || { cat ${output} >&2; exit 1; }`;
}

function isLeftOut({ notRun }: Fence): boolean {
  return notRun !== undefined;
}

/** When the script began, and when each step was over. */
function timesIn(path: string): readonly number[] {
  try {
    const lines = Deno.readTextFileSync(path).trimEnd().split("\n");
    return lines.map((nanoseconds) => Number(nanoseconds) / 1_000_000);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
