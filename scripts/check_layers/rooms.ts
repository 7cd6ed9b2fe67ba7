import type ts from "typescript";
import { importsOf } from "./imports.ts";

/** The imports between rooms, by the importing and the imported room. */
type RoomGraph = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/**
 * Cycles of folders of one layer, of any length: one line for each import at the cycle's rarest
 * step. A folder and its subfolders are separate rooms.
 */
export function roomProblems(sources: readonly ts.SourceFile[]): readonly string[] {
  const graph = roomGraphOf(sources);
  const problems = new Set<string>();
  for (const [from, next] of graph) {
    for (const to of next.keys()) {
      const way = shortestWay(graph, to, from);
      if (way === undefined) continue;
      for (const problem of cycleProblems(graph, [from, ...way])) problems.add(problem);
    }
  }
  return [...problems];
}

function roomGraphOf(sources: readonly ts.SourceFile[]): RoomGraph {
  const graph = new Map<string, Map<string, string[]>>();
  for (const source of sources) {
    for (const imported of importsOf(source)) {
      const [from, to] = [roomOf(source.fileName), roomOf(imported)];
      if (from === to || layerOf(from) !== layerOf(to)) continue;
      const next = graph.get(from) ?? new Map<string, string[]>();
      const imports = next.get(to) ?? [];
      imports.push(`${source.fileName}: imports ${imported}`);
      graph.set(from, next.set(to, imports));
    }
  }
  return graph;
}

/** The rooms of a shortest way, both ends included. `undefined`: there is none. */
function shortestWay(graph: RoomGraph, start: string, end: string): readonly string[] | undefined {
  const ways = new Map<string, readonly string[]>([[start, [start]]]);
  // A Map visits the keys that are added during the loop: the nearer rooms come first.
  for (const [room, way] of ways) {
    if (room === end) return way;
    for (const next of graph.get(room)?.keys() ?? []) {
      if (!ways.has(next)) ways.set(next, [...way, next]);
    }
  }
  return undefined;
}

/** `cycle` ends in its first room. The text is the same wherever in the cycle that is. */
function cycleProblems(graph: RoomGraph, cycle: readonly string[]): readonly string[] {
  const steps = cycle.slice(1).map((to, index) => {
    const from = cycle[index] ?? "";
    return { from, index, imports: graph.get(from)?.get(to) ?? [] };
  });
  const [rarest] = steps.sort((one, other) =>
    one.imports.length - other.imports.length || (one.from < other.from ? -1 : 1)
  );
  if (rarest === undefined) return [];
  const path = [...cycle.slice(rarest.index, -1), ...cycle.slice(0, rarest.index), rarest.from];
  return rarest.imports.map((one) => `${one}; the rooms form a cycle: ${path.join(" -> ")}`);
}

function roomOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** A layer is a folder of `src`. */
function layerOf(room: string): string {
  const [top, layer] = room.split("/");
  return top === "src" ? `${top}/${layer}` : room;
}
