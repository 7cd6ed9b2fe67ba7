import ts from "typescript";

const FILE_LINES_MAX = { src: 350, tests: 400 };
const COLUMNS_MAX = 100;
const FUNCTION_LINES_MAX = 70;
const PARAMETERS_MAX = 4;
const CLASS_FIELDS_MAX = 10;
const PORT_METHODS_MAX = 6;
/** Files beside the back ends' folders. */
const PORT_REGEXP = /^src\/(storage|metadata|upstream|locks)\/[^/]+$/;

/** Exceeded limits of a file, one line each. */
export function limitProblems(source: ts.SourceFile): readonly string[] {
  return [...sizeProblems(source), ...nodeProblems(source, source)];
}

function sizeProblems({ fileName, text }: ts.SourceFile): readonly string[] {
  const lines = text.split("\n");
  const max = fileName.startsWith("tests/") ? FILE_LINES_MAX.tests : FILE_LINES_MAX.src;
  return [
    ...excess(fileName, "lines", lines.length - 1, max),
    ...lines.flatMap((line, index) =>
      excess(`${fileName}:${index + 1}`, "columns", line.length, COLUMNS_MAX)
    ),
  ];
}

function nodeProblems(source: ts.SourceFile, node: ts.Node): readonly string[] {
  const line = lineOf(source, node.getStart(source));
  const place = `${source.fileName}:${line}`;
  const problems: string[] = [];
  if (ts.isFunctionLike(node)) {
    if ("body" in node && node.body !== undefined) {
      const lines = lineOf(source, node.getEnd()) - line + 1;
      problems.push(...excess(place, "lines in a function", lines, FUNCTION_LINES_MAX));
    }
    problems.push(...excess(place, "parameters", parametersOf(node), PARAMETERS_MAX));
  } else if (ts.isClassLike(node)) {
    problems.push(...excess(place, "fields in a class", fieldsOf(node), CLASS_FIELDS_MAX));
  } else if (ts.isInterfaceDeclaration(node)) {
    if (PORT_REGEXP.test(source.fileName)) {
      const methods = node.members.filter(ts.isMethodSignature).length;
      problems.push(...excess(place, "methods of a port", methods, PORT_METHODS_MAX));
    }
  }
  node.forEachChild((child) => void problems.push(...nodeProblems(source, child)));
  return problems;
}

function parametersOf(node: ts.SignatureDeclaration | ts.JSDocSignature): number {
  return node.parameters.filter(({ name }) => name?.getText() !== "this").length;
}

/** Fields of an instance, including the constructor's `private readonly x`. */
function fieldsOf(node: ts.ClassLikeDeclaration): number {
  return node.members.flatMap((member): readonly ts.Node[] => {
    if (ts.isConstructorDeclaration(member)) {
      return member.parameters.filter((one) => ts.isParameterPropertyDeclaration(one, member));
    }
    const isStatic = (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Static) !== 0;
    return ts.isPropertyDeclaration(member) && !isStatic ? [member] : [];
  }).length;
}

function lineOf(source: ts.SourceFile, position: number): number {
  return source.getLineAndCharacterOfPosition(position).line + 1;
}

function excess(place: string, what: string, count: number, max: number): readonly string[] {
  return count > max ? [`${place}: ${count} ${what}, at most ${max}`] : [];
}
