import ts from "typescript";

/** Names that `src` exports and no code beside the tests mentions again. */
export function deadExports(sources: readonly ts.SourceFile[]): readonly string[] {
  const code = sources.filter(({ fileName }) => !fileName.startsWith("tests/"));
  const mentions = new Map<string, number>();
  for (const source of code) {
    const count = (node: ts.Node): void => {
      if (ts.isIdentifier(node)) mentions.set(node.text, (mentions.get(node.text) ?? 0) + 1);
      node.forEachChild(count);
    };
    count(source);
  }
  return code.filter(({ fileName }) => fileName.startsWith("src/")).flatMap((source) =>
    exportedNames(source).filter((name) => mentions.get(name) === 1)
      .map((name) => `${source.fileName}: nothing but tests uses ${name}`)
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
    [...new Set(exportedNames(source))].flatMap((name) => {
      const first = firsts.get(name) ?? source.fileName;
      firsts.set(name, first);
      return first === source.fileName ? [] : [`${source.fileName}: ${first} exports ${name}, too`];
    })
  );
}

function exportedNames(source: ts.SourceFile): readonly string[] {
  return source.statements.flatMap((statement) => {
    const isExported = ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) return [];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map(({ name }) => name.getText(source));
    }
    const { name } = statement as ts.DeclarationStatement;
    return name === undefined ? [] : [name.getText(source)];
  });
}
