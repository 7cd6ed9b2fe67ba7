import ts from "typescript";

/** A row of `docs/rules.md`. */
export interface Rule {
  /** The page that makes the promise. */
  readonly page: string;
  /** Words of that page. */
  readonly promise: string;
  /** `src/…ts:name`: the function, method, class or constant of the file that keeps it. */
  readonly keeper: string;
  /** `tests/…_test.ts`, and the test's whole name, with `…` for each part that is computed. */
  readonly testPath: string;
  readonly testName: string;
}

/** A name with fewer constant words promises nothing. */
const NAME_WORDS_MIN = 4;

const ROW_REGEXP =
  /^\| (?<promise>[^|]+) \| `(?<keeper>[^`]+)` \| `(?<path>[^`]+)`: (?<name>[^|]+) \|$/;

/** Each table has a heading that links to its page. */
const HEADING_REGEXP = /^## \[[^\]]+\]\((?<page>[^)]+)\)$/;

/** The rows of the tables in `text`. Any other row or heading is a problem. */
export function readRules(text: string): { rules: Rule[]; problems: string[] } {
  const rules: Rule[] = [];
  const problems: string[] = [];
  let page = "README.md";
  for (const [index, line] of text.split("\n").entries()) {
    if (line.startsWith("## ")) {
      const linked = HEADING_REGEXP.exec(line)?.groups?.page;
      if (linked === undefined) {
        problems.push(`docs/rules.md:${index + 1}: is no heading of the shape ## [Page](page.md)`);
      } else page = new URL(linked, "file:///docs/").pathname.slice(1);
    }
    if (!line.startsWith("|") || /^\| (Promise|-+) \|/.test(line)) continue;
    const { promise, keeper, path, name } = ROW_REGEXP.exec(line)?.groups ?? {};
    if (promise && keeper && path && name) {
      rules.push({ page, promise, keeper, testPath: path, testName: name });
    } else {
      const shape = "| promise | `file:function` | `test file`: name |";
      problems.push(`docs/rules.md:${index + 1}: is no row of the shape ${shape}`);
    }
  }
  return { rules, problems };
}

/** The missing parts of a rule, one line each. `readFile`: `undefined` for a missing file. */
export function ruleProblems(
  { page, promise, keeper, testPath, testName }: Rule,
  readFile: (path: string) => string | undefined,
): readonly string[] {
  const about = `docs/rules.md: "${promise}"`;
  const [keeperPath = "", name = ""] = keeper.split(":");
  const problems: string[] = [];
  if (!inOneLine(readFile(page)).includes(inOneLine(promise))) {
    problems.push(`${about}: ${page} does not say so`);
  }
  if (!declares(keeperPath, readFile(keeperPath) ?? "", name)) {
    problems.push(`${about}: ${keeperPath} has no ${name}`);
  }
  if (!testNames(testPath, readFile(testPath) ?? "").has(testName)) {
    problems.push(`${about}: ${testPath} has no test "${testName}"`);
  } else if ((testName.match(/[^\s…]{2,}/g) ?? []).length < NAME_WORDS_MIN) {
    problems.push(`${about}: the name of its test is mostly computed: "${testName}"`);
  }
  return problems;
}

/** Anything that a script of the shell declares: a function or a variable. */
const SHELL_NAMES_REGEXP = /^(?<name>\w+)(?:\(\) \{|=)/gm;

/** The names that a file of Nix gives values to. */
const NIX_NAMES_REGEXP = /^ *(?<name>[\w.-]+) =/gm;

/** True for a function, a method, a class, or a constant of the whole file. A call is none. */
function declares(path: string, text: string, name: string): boolean {
  if (!/\.[jt]s$/.test(path)) {
    const regexp = path.endsWith(".nix") ? NIX_NAMES_REGEXP : SHELL_NAMES_REGEXP;
    return [...text.matchAll(regexp)].some(({ groups }) => groups?.["name"] === name);
  }
  return keeperNode(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true), name) !==
    undefined;
}

/** The function, method, class or constant of this name, as rows of `docs/rules.md` name them. */
export function keeperNode(source: ts.SourceFile, name: string): ts.Node | undefined {
  const find = (node: ts.Node): ts.Node | undefined =>
    isKeeper(node) && node.name?.getText(source) === name ? node : ts.forEachChild(node, find);
  return find(source);
}

function isKeeper(node: ts.Node): node is ts.NamedDeclaration {
  return ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isVariableDeclaration(node) && ts.isSourceFile(node.parent.parent.parent);
}

/** A function that registers a test, such as `Deno.test`, `sceneTest` or `checkProperty`. */
const TEST_MAKER_REGEXP = /^(?:Deno\.test|\w*[tT]est|testUnless|testWhere|checkProperty)$/;

/** Those with the reason for leaving the test out before its name. */
const EXCUSED_TESTS: ReadonlySet<string> = new Set(["testUnless", "testWhere", "executableTest"]);

/** A variable with the clauses of a contract, by its type. */
const CLAUSES_REGEXP = /^Clauses</;

/** Names of tests, of properties, and of a contract's clauses. */
function testNames(path: string, text: string): ReadonlySet<string> {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && TEST_MAKER_REGEXP.test(node.expression.getText())) {
      const [name] = node.arguments.slice(EXCUSED_TESTS.has(node.expression.getText()) ? 1 : 0);
      if (name !== undefined) names.add(constantPart(nameIn(name)));
    } else if (ts.isVariableDeclaration(node) && CLAUSES_REGEXP.test(node.type?.getText() ?? "")) {
      for (const clause of propertiesOf(node.initializer)) names.add(constantPart(clause.name));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

/** The name within `{ name: … }`; any other argument is the name itself. */
function nameIn(argument: ts.Node): ts.Node {
  const named = propertiesOf(argument).find(({ name }) => name.getText() === "name");
  return named?.initializer ?? argument;
}

function propertiesOf(node: ts.Node | undefined): readonly ts.PropertyAssignment[] {
  if (node === undefined || !ts.isObjectLiteralExpression(node)) return [];
  return node.properties.filter(ts.isPropertyAssignment);
}

/** The text of a name, with `…` for computed parts. */
function constantPart(node: ts.Node): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  let text = "…";
  if (ts.isTemplateExpression(node)) {
    text = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join("…");
  } else if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    text = constantPart(node.left) + constantPart(node.right);
  }
  return text.replaceAll(/…+/g, "…");
}

/** The text without its line breaks. */
export function inOneLine(text = ""): string {
  return text.replaceAll(/\s+/g, " ");
}
