/** Programs that tests drive beside Deno and `sh`, and the Debian package of each. */
export const PROGRAMS = {
  bash: "bash",
  caddy: "caddy",
  bzip2: "bzip2",
  cat: "coreutils",
  chromium: "chromium",
  chown: "coreutils",
  chroot: "coreutils",
  cp: "coreutils",
  curl: "curl",
  cut: "coreutils",
  date: "coreutils",
  find: "findutils",
  fish: "fish",
  grep: "grep",
  install: "coreutils",
  ldd: "libc-bin",
  mandoc: "mandoc",
  mkdir: "coreutils",
  mkfifo: "coreutils",
  mount: "mount",
  nginx: "nginx-light",
  nix: "nix-bin",
  "nix-store": "nix-bin",
  openssl: "openssl",
  patchelf: "patchelf",
  perl: "perl-base",
  prometheus: "prometheus",
  promtool: "prometheus",
  readlink: "coreutils",
  "redis-cli": "redis-tools",
  "redis-server": "redis-server",
  rm: "coreutils",
  script: "bsdutils",
  sed: "sed",
  setpriv: "util-linux",
  sleep: "coreutils",
  "systemd-analyze": "systemd",
  tar: "tar",
  taskset: "util-linux",
  touch: "coreutils",
  unshare: "util-linux",
  wrk: "wrk",
  xargs: "findutils",
  xz: "xz-utils",
  zsh: "zsh",
  zstd: "zstd",
} as const;

export type Program = keyof typeof PROGRAMS;

/** Words of the output of `--version`, where a program of the same name may be another one. */
const MARKS: Readonly<Partial<Record<Program, string>>> = { script: "util-linux" };

/** Names a file that gets a line for each question for a program: the program and the test file. */
export const ASKED_VARIABLE = "PROGRAMS_ASKED";

/** Findings of this process. */
const found = new Map<Program, boolean>();

/** Why the first missing one of these programs cannot be run here; empty when all can. */
export function programsMissing(...programs: readonly Program[]): string {
  programs.forEach(noteAsked);
  const missing = programs.find((program) => !isInstalled(program));
  return missing === undefined
    ? ""
    : `${missing} is not installed (Debian: apt install ${PROGRAMS[missing]})`;
}

/** Whether a program can be run here, for a test that has another way. */
export function isInstalled(program: Program): boolean {
  const known = found.get(program) ?? runs(program);
  found.set(program, known);
  return known;
}

function runs(program: Program): boolean {
  // A Worker of a test may not run programs.
  if (Deno.permissions.querySync({ name: "run", command: program }).state !== "granted") {
    return false;
  }
  try {
    const { stdout } = new Deno.Command(program, { args: ["--version"], stderr: "null" })
      .outputSync();
    return new TextDecoder().decode(stdout).includes(MARKS[program] ?? "");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return false;
  }
}

function noteAsked(program: Program): void {
  const variable = ASKED_VARIABLE;
  const path = Deno.permissions.querySync({ name: "env", variable }).state === "granted" &&
    Deno.env.get(variable);
  if (!path) return;
  Deno.writeTextFileSync(path, `${program} ${Deno.mainModule}\n`, { append: true });
}

/** `excuse` where there is no file at this place; else empty. */
export function unlessFile(path: string, excuse: string): string {
  try {
    Deno.statSync(path);
    return "";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return excuse;
  }
}

/** Why a test cannot open a terminal here; empty when it can. */
export function terminalMissing(): string {
  const program = programsMissing("script");
  if (program !== "") return program;
  const command = "test -t 1";
  const args = ["--quiet", "--return", "--command", command, "/dev/null"];
  const { success } = new Deno.Command("script", { args, stdout: "null", stderr: "null" })
    .outputSync();
  return success ? "" : "no terminal can be opened (/dev/pts)";
}

/**
 * Registers a test. If `missing` names a missing back end, the test is ignored, and its name gives
 * the reason. With `REQUIRE_ALL_BACKENDS` set that is an error, unless `EXCUSED_BACKENDS` names
 * that back end: CI says so, aloud, where a machine cannot have it.
 */
export function testUnless(
  missing: string,
  name: string,
  fn: (test: Deno.TestContext) => void | Promise<void>,
): void {
  if (isRequired(missing)) {
    throw new Error(`Cannot leave out "${name}", all back ends are required: ${missing}`);
  }
  testWhere(missing, name, fn);
}

/** Registers a test that `excuse`, if there is one, makes pointless here. Its name says so. */
export function testWhere(
  excuse: string,
  name: string,
  fn: (test: Deno.TestContext) => void | Promise<void>,
): void {
  Deno.test({
    name: name + (excuse && ` (skipped: ${excuse})`),
    ignore: excuse !== "",
    fn,
  });
}

/** Whether it is an error that a test is left out for this reason. */
function isRequired(excuse: string): boolean {
  if (excuse === "" || !Deno.env.get("REQUIRE_ALL_BACKENDS")) return false;
  const excused = (Deno.env.get("EXCUSED_BACKENDS") ?? "").split(",");
  return !excused.some((name) => name !== "" && excuse.includes(name));
}

export interface ProgramOutcome {
  readonly code: number;
  /** The text that it wrote, to either stream. */
  readonly output: string;
}

/** Runs a program with a text on its standard input. */
export async function runWithInput(
  program: string,
  args: readonly string[],
  input: string,
): Promise<ProgramOutcome> {
  const options = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  const child = new Deno.Command(program, { args: [...args], ...options }).spawn();
  const written = new Blob([input]).stream().pipeTo(child.stdin);
  const [{ code, stdout, stderr }] = await Promise.all([child.output(), written]);
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout) + decoder.decode(stderr) };
}
