import ts from "typescript";

/**
 * Names that `src` exports in vain: no code beside the tests mentions them again, or no other file
 * mentions a value. A type may belong to the exports of its file. Tests alone play the runtime.
 */
export function deadExports(sources: readonly ts.SourceFile[]): readonly string[] {
  const mentions = new Map<string, string[]>();
  for (const source of sources) {
    const note = (node: ts.Node): void => {
      if (ts.isIdentifier(node)) {
        const places = mentions.get(node.text) ?? [];
        places.push(source.fileName);
        mentions.set(node.text, places);
      }
      node.forEachChild(note);
    };
    note(source);
  }
  const isJudged = ({ fileName }: ts.SourceFile) =>
    fileName.startsWith("src/") && !fileName.startsWith("src/runtime/");
  return sources.filter(isJudged).flatMap((source) =>
    exportedNames(source).flatMap(({ name, isType }) => {
      const places = mentions.get(name) ?? [];
      const inCode = places.filter((path) => !path.startsWith("tests/"));
      if (inCode.length === 1) return [`${source.fileName}: nothing but tests uses ${name}`];
      const isOwn = !isType && new Set(places).size === 1;
      return isOwn ? [`${source.fileName}: no other file uses ${name}`] : [];
    })
  );
}

/** Names that two files of `src` export. One name means one thing, and a search finds it. */
export function twinExports(sources: readonly ts.SourceFile[]): readonly string[] {
  const firsts = new Map<string, string>();
  const own = sources.filter((source) =>
    source.fileName.startsWith("src/") && !source.isDeclarationFile
  );
  return own.flatMap((source) =>
    // The overloads of a function have one name.
    [...new Set(exportedNames(source).map(({ name }) => name))].flatMap((name) => {
      const first = firsts.get(name) ?? source.fileName;
      firsts.set(name, first);
      return first === source.fileName ? [] : [`${source.fileName}: ${first} exports ${name}, too`];
    })
  );
}

interface ExportedName {
  readonly name: string;
  readonly isType: boolean;
}

function exportedNames(source: ts.SourceFile): readonly ExportedName[] {
  return source.statements.flatMap((statement) => {
    const isExported = ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) return [];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map(({ name }) => (
        { name: name.getText(source), isType: false }
      ));
    }
    const { name } = statement as ts.DeclarationStatement;
    const isType = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
    return name === undefined ? [] : [{ name: name.getText(source), isType }];
  });
}
