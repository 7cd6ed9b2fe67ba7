import type ts from "typescript";
import { importsOf } from "./imports.ts";

/**
 * Folders of one layer that import each other both ways: one line for each import in the rarer
 * direction. A folder and its subfolders are separate rooms.
 */
export function roomProblems(sources: readonly ts.SourceFile[]): readonly string[] {
  const doors = new Map<string, string[]>();
  for (const source of sources) {
    for (const imported of importsOf(source)) {
      const [from, to] = [roomOf(source.fileName), roomOf(imported)];
      if (from === to || layerOf(from) !== layerOf(to)) continue;
      const door = `${from} -> ${to}`;
      doors.set(door, [...doors.get(door) ?? [], `${source.fileName}: imports ${imported}`]);
    }
  }
  return [...doors].flatMap(([door, imports]) => {
    const [from = "", to = ""] = door.split(" -> ");
    const back = doors.get(`${to} -> ${from}`) ?? [];
    const isFewer = back.length > imports.length || (back.length === imports.length && from < to);
    return isFewer ? imports.map((one) => `${one}; ${to} knows ${from}, so ${from} must not`) : [];
  });
}

function roomOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** A layer is a folder of `src`. */
function layerOf(room: string): string {
  const [top, layer] = room.split("/");
  return top === "src" ? `${top}/${layer}` : room;
}
