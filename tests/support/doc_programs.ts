import { PERMISSIONS } from "./larder_process.ts";

/** The project's folder. */
export const CODE_ROOT = new URL("../..", import.meta.url).pathname;

/** Tasks that take minutes; the documents name them, and tests or CI run them by themselves. */
const LONG_TASKS = "test|ok|bench|bench-turns|soak|reliability|compile|screenshots|gen|docs";

/** Starts a server and waits until it answers, in place of the one before. */
const START = `
start() { # name, line of the log, program and its words
  name=$1 ready=$2; shift 2
  stop "$name"
  : >"$DOC_ROOT/$name.log"
  "$@" </dev/null >"$DOC_ROOT/$name.log" 2>&1 &
  echo $! >"$DOC_ROOT/$name.pid"
  until grep -q "$ready" "$DOC_ROOT/$name.log"; do
    kill -0 $! 2>/dev/null || { cat "$DOC_ROOT/$name.log" >&2; exit 1; }
    sleep 0.05
  done
}
stop() {
  [ -e "$DOC_ROOT/$1.pid" ] || return 0
  pid=$(cat "$DOC_ROOT/$1.pid")
  kill "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  rm "$DOC_ROOT/$1.pid"
}
`;

/**
 * Writes the programs that the commands of a page find first: larder, scripts/deno and prometheus.
 * Each server goes on in the background, as in another terminal.
 */
export function writePrograms(root: string): void {
  const executable = Deno.env.get("LARDER_EXECUTABLE");
  const larder = executable ??
    [Deno.execPath(), "run", "--quiet", "--cached-only", ...PERMISSIONS, `${CODE_ROOT}main.ts`]
      .join(" ");
  write(
    `${root}/bin/larder`,
    `${START}
for word in "$@"; do
  if [ "$word" = serve ]; then start larder '"server started"' ${larder} "$@"; exit; fi
done
exec ${larder} "$@"`,
  );
  write(
    `${root}/home/scripts/deno`,
    `
[ "$1" != task ] || shift
[ "$1" != --quiet ] || shift
case "$1" in
  serve) exec larder "$@" ;;
  demo)
    # Two pages begin with it; once is enough.
    [ ! -e "$DOC_WORLD/demo-ran" ] || exit 0
    cd '${CODE_ROOT}'
    '${Deno.execPath()}' task --quiet demo
    touch "$DOC_WORLD/demo-ran" ;;
  run) while [ "$1" != main.ts ]; do shift; done; shift; exec larder "$@" ;;
  ${LONG_TASKS}) echo "not run: scripts/deno task $1 takes minutes" >&2 ;;
  *) echo "Cannot run scripts/deno $*" >&2; exit 1 ;;
esac`,
  );
  write(
    `${root}/bin/prometheus`,
    `${START}
PATH=\${PATH#*:}
start prometheus 'Server is ready' prometheus "$@" \\
  --web.listen-address="127.0.0.1:$DOC_PROMETHEUS_PORT"`,
  );
  write(`${root}/bin/stop-all`, `${START}\nstop larder\nstop prometheus`);
}

function write(path: string, text: string): void {
  Deno.writeTextFileSync(path, `#!/bin/sh\nset -eu\n${text}\n`, { mode: 0o755 });
}
