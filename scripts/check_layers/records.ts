import ts from "typescript";
import { pathOf } from "./imports.ts";

/** Fields that a class or a function is given at once, the inherited ones included. */
const FIELDS_MAX = 7;

const RECORD_REGEXP = /(Deps|Parts|Sources|Subjects|Neighbours|Surroundings)$/;

/** A class's field for such a record. */
const HELD_REGEXP = /^#(?:deps|parts)$/;

const OPTIONS: ts.CompilerOptions = {
  // The oldest library has `Pick` and `Omit`. A newer one costs seconds, and shows no more fields.
  lib: ["lib.es5.d.ts"],
  types: [],
  allowImportingTsExtensions: true,
  noEmit: true,
  target: ts.ScriptTarget.Latest,
};

/**
 * Records of `src` with too many fields, one line each. A record is the input that a class or a
 * function works with, by its name: `…Deps`, `…Parts`, `…Sources` and so on. Tests may list
 * the parts that they replace side by side.
 */
export function recordProblems(all: readonly ts.SourceFile[]): readonly string[] {
  const sources = all.filter(({ fileName }) => fileName.startsWith("src/"));
  const program = ts.createProgram(
    sources.map(({ fileName }) => fileName),
    OPTIONS,
    hostOf(sources),
  );
  const checker = program.getTypeChecker();
  return sources.flatMap((source) =>
    [...recordsIn(source), ...heldRecordsIn(source)].flatMap((record) => {
      const { line } = source.getLineAndCharacterOfPosition(record.getStart(source));
      const count = checker.getPropertiesOfType(checker.getTypeAtLocation(record.name)).length;
      const place = `${source.fileName}:${line + 1}`;
      const name = record.name.getText(source);
      const problem = `${place}: ${count} fields of ${name}, at most ${FIELDS_MAX}`;
      return count > FIELDS_MAX ? [problem] : [];
    })
  );
}

/** Fields of classes that hold such a record: its type may be joined of others, without a name. */
function heldRecordsIn(source: ts.SourceFile): ts.PropertyDeclaration[] {
  return source.statements.filter(ts.isClassDeclaration)
    .flatMap(({ members }) => members.filter(ts.isPropertyDeclaration))
    .filter(({ name }) => HELD_REGEXP.test(name.getText(source)));
}

function recordsIn(source: ts.SourceFile): (ts.InterfaceDeclaration | ts.TypeAliasDeclaration)[] {
  return source.statements.filter((node) =>
    ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
  ).filter(({ name }) => RECORD_REGEXP.test(name.text));
}

/** Knows these sources and the library. Packages stay unresolved: no record inherits from one. */
function hostOf(sources: readonly ts.SourceFile[]): ts.CompilerHost {
  const files = new Map(sources.map((source) => [source.fileName, source]));
  const library = ts.getDefaultLibFilePath(OPTIONS).replace(/[^/\\]+$/, "");
  return {
    getSourceFile: (path) => files.get(path) ?? librarySource(path),
    getDefaultLibFileName: () => `${library}lib.d.ts`,
    getDefaultLibLocation: () => library,
    resolveModuleNameLiterals: (literals, importer) =>
      literals.map(({ text }) => {
        const resolvedFileName = text.startsWith(".") ? pathOf(text, importer) : text;
        const isKnown = files.has(resolvedFileName);
        return { resolvedModule: isKnown ? { resolvedFileName, extension: ".ts" } : undefined };
      }),
    fileExists: (path) => files.has(path),
    readFile: (path) => files.get(path)?.text,
    writeFile: () => {},
    getCurrentDirectory: () => "",
    getCanonicalFileName: (path) => path,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
  };
}

function librarySource(path: string): ts.SourceFile | undefined {
  const text = ts.sys.readFile(path);
  return text === undefined ? undefined : ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
}
