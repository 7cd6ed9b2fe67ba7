import ts from "typescript";

/** Time and chance of the process, and its network and threads. `src/runtime/` alone knows them. */
const AMBIENT = new Set([
  "fetch",
  "Deno.connect",
  "Deno.createHttpClient",
  "Worker",
  "performance.now",
  "performance.timeOrigin",
  "Date.now",
  "Math.random",
  "crypto.randomUUID",
  "crypto.getRandomValues",
  "AbortSignal.timeout",
  // Deno 2.6.8 loses its aborts.
  "AbortSignal.any",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "Deno.unrefTimer",
]);

const AMBIENT_MODULE_REGEXP = /^node:(timers|dns)(\/promises)?$/;

/**
 * Rooms that are about one of them: back ends of other servers, sockets and TLS, and commands, which
 * run in a process of their own. They read the clock like all others.
 */
const OWN_NET_REGEXP =
  /^src\/(metadata\/(sqlite|postgres)|storage\/s3|locks\/redis|http\/tls|telemetry\/otel|app|cli)\//;
const FILES_REGEXP =
  /^Deno\.(open|create|read|write|stat|lstat|mkdir|makeTemp|rename|link|symlink|copyFile|remove|truncate|chmod|utime)\w*$/;

/** Rooms whose business with files is their own: other people's folders, databases and sockets. */
const OWN_FILES_REGEXP =
  /^src\/(metadata|storage\/s3|cache\/import|http\/tls|telemetry|app|cli)\/|^src\/base\/database_copy\.ts$/;

const NET = new Set([
  "fetch",
  "Deno.connect",
  "Deno.createHttpClient",
  "Worker",
  "node:dns/promises",
]);

/** Uses of time, chance, network, files and threads past `src/runtime/`, one line each. */
export function ambientProblems(source: ts.SourceFile): readonly string[] {
  const path = source.fileName;
  if (!path.startsWith("src/") || path.startsWith("src/runtime/")) return [];
  const problems: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = ambientNameOf(node, source);
    const isOwn = name !== undefined && (NET.has(name) && OWN_NET_REGEXP.test(path) ||
      FILES_REGEXP.test(name) && OWN_FILES_REGEXP.test(path));
    if (name !== undefined && !isOwn) {
      const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
      problems.push(`${path}:${line}: uses ${name}; src/runtime/ stands for it`);
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
  if (ts.isNewExpression(node) && node.expression.getText(source) === "Worker") return "Worker";
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
    return AMBIENT.has(node.expression.text) ? node.expression.text : undefined;
  }
  if (!ts.isPropertyAccessExpression(node)) return undefined;
  const name = node.getText(source);
  return AMBIENT.has(name) || FILES_REGEXP.test(name) ? name : undefined;
}
