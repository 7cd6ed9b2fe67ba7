import ts from "typescript";

/** Time and chance of the process. `src/runtime/` alone reads them, so that a test can play them. */
const AMBIENT = new Set([
  "performance.now",
  "performance.timeOrigin",
  "Date.now",
  "Math.random",
  "crypto.randomUUID",
  "crypto.getRandomValues",
  "AbortSignal.timeout",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "Deno.unrefTimer",
]);

const AMBIENT_MODULE_REGEXP = /^node:timers(\/promises)?$/;

/** Uses of time and chance past `src/runtime/`, one line each. */
export function ambientProblems(source: ts.SourceFile): readonly string[] {
  const path = source.fileName;
  if (!path.startsWith("src/") || path.startsWith("src/runtime/")) return [];
  const problems: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = ambientNameOf(node, source);
    if (name !== undefined) {
      const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
      problems.push(`${path}:${line}: uses ${name}; src/runtime/current.ts has the clock and dice`);
    }
    node.forEachChild(visit);
  };
  visit(source);
  return problems;
}

function ambientNameOf(node: ts.Node, source: ts.SourceFile): string | undefined {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const { text } = node.moduleSpecifier;
    return AMBIENT_MODULE_REGEXP.test(text) ? text : undefined;
  }
  if (ts.isNewExpression(node) && node.expression.getText(source) === "Date") {
    return (node.arguments ?? []).length === 0 ? "new Date()" : undefined;
  }
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
    return AMBIENT.has(node.expression.text) ? node.expression.text : undefined;
  }
  if (!ts.isPropertyAccessExpression(node)) return undefined;
  const name = node.getText(source);
  return AMBIENT.has(name) ? name : undefined;
}
