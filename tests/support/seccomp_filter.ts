import { unlessFile } from "./program.ts";

/** The numbers of the system calls of this machine; of linux-libc-dev. */
const NUMBERS = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";

/** Why no filter can be made here; empty when one can. */
export function seccompMissing(): string {
  if (Deno.build.arch !== "x86_64") return "the filter is for x86-64";
  return unlessFile(NUMBERS, `${NUMBERS} is missing (Debian: apt install linux-libc-dev)`);
}

// From linux/seccomp.h, linux/filter.h and linux/audit.h.
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff_0000;
const KILL = 0x8000_0000;
const refuse = (error: number) => 0x0005_0000 | error;
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const FIRST_ARGUMENT_AT = 16;
const X86_64 = 0xc000_003e;
const EPERM = 1;
const EAFNOSUPPORT = 97;
const FAMILIES = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10 } as const;
/** Every CLONE_NEW… flag. */
const NAMESPACES = 0x7e02_0080;
const OF_NAMESPACES = ["unshare", "setns"];

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, k: number];

/** A unit's lines about system calls. */
export interface CallRules {
  /** The lines of SystemCallFilter. */
  readonly filter: readonly string[];
  /** RestrictAddressFamilies. */
  readonly families: string;
}

/** The program for the kernel that systemd would make of these rules, and of RestrictNamespaces. */
export function seccompFilter({ filter, families }: CallRules): Uint8Array {
  const numbers = readNumbers();
  const allowed = [...allowedCalls(filter)].filter((name) => !OF_NAMESPACES.includes(name))
    .flatMap((name) => numbers.get(name) ?? []);
  const words = families.split(" ") as (keyof typeof FAMILIES)[];
  const program: readonly Instruction[] = [
    [LOAD, 0, 0, ARCHITECTURE_AT],
    [JUMP_IF_EQUAL, 1, 0, X86_64],
    [RETURN, 0, 0, KILL],
    ...whenCalled(numbers.get("socket"), [
      ...words.flatMap((word) => allowIf(JUMP_IF_EQUAL, FAMILIES[word])),
      [RETURN, 0, 0, refuse(EAFNOSUPPORT)],
    ]),
    ...whenCalled(numbers.get("clone"), [
      [JUMP_IF_ANY_BIT, 0, 1, NAMESPACES],
      [RETURN, 0, 0, refuse(EPERM)],
      [RETURN, 0, 0, ALLOW],
    ]),
    [LOAD, 0, 0, NUMBER_AT],
    ...allowed.flatMap((number) => allowIf(JUMP_IF_EQUAL, number)),
    [RETURN, 0, 0, refuse(EPERM)],
  ];
  return encode(program);
}

function allowIf(code: number, value: number): readonly Instruction[] {
  return [[code, 0, 1, value], [RETURN, 0, 0, ALLOW]];
}

/** Instructions on the first argument of one call. Each path through them ends in a decision. */
function whenCalled(
  number: number | undefined,
  then: readonly Instruction[],
): readonly Instruction[] {
  if (number === undefined) return [];
  return [
    [LOAD, 0, 0, NUMBER_AT],
    [JUMP_IF_EQUAL, 0, then.length + 1, number],
    [LOAD, 0, 0, FIRST_ARGUMENT_AT],
    ...then,
  ];
}

function encode(program: readonly Instruction[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(program.length * 8));
  for (const [index, [code, ifTrue, ifFalse, k]] of program.entries()) {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, ifTrue);
    view.setUint8(index * 8 + 3, ifFalse);
    view.setUint32(index * 8 + 4, k, true);
  }
  return new Uint8Array(view.buffer);
}

/** The calls of the lines, in order: `~` takes away. systemd allows `@default` in any case. */
function allowedCalls(filter: readonly string[]): ReadonlySet<string> {
  const groups = readGroups();
  const allowed = new Set(membersOf("@default", groups));
  for (const line of filter) {
    const takesAway = line.startsWith("~");
    for (const word of line.replace("~", "").split(" ")) {
      for (const call of membersOf(word, groups)) {
        if (takesAway) allowed.delete(call);
        else allowed.add(call);
      }
    }
  }
  return allowed;
}

function membersOf(
  word: string,
  groups: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const members = groups.get(word);
  return members === undefined ? [word] : members.flatMap((member) => membersOf(member, groups));
}

/** The groups of calls as systemd has them. */
function readGroups(): ReadonlyMap<string, readonly string[]> {
  const { stdout } = new Deno.Command("systemd-analyze", { args: ["syscall-filter"] }).outputSync();
  const groups = new Map<string, string[]>();
  let members: string[] = [];
  for (const line of new TextDecoder().decode(stdout).split("\n")) {
    const word = line.trim();
    if (/^@/.test(line)) groups.set(word, members = []);
    else if (/^ +[@a-z_0-9-]+$/.test(line)) members.push(word);
  }
  return groups;
}

function readNumbers(): ReadonlyMap<string, number> {
  const lines = Deno.readTextFileSync(NUMBERS).matchAll(/^#define __NR_(\w+) (\d+)$/gm);
  return new Map([...lines].map(([, name = "", number]) => [name, Number(number)]));
}
