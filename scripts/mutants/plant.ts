import ts from "typescript";
import { keeperNode } from "../check_docs/rules.ts";

/** One single fault in a file. */
export interface Mutant {
  /** The whole text of the file with the fault. */
  readonly text: string;
  readonly line: number;
  /** What stands there, and what was planted. */
  readonly before: string;
  readonly after: string;
}

/** Planted counterparts: a bound off by one, a turned or widened condition, the other of two. */
const COUNTERPARTS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
  "Math.min": "Math.max",
  "Math.max": "Math.min",
};

/**
 * Each single fault in the function, method, class or constant `name` of a file: an operator or a
 * condition turned, a truth value turned, a call left out or not waited for. Empty without such a
 * name; without `name`, those of the whole file.
 */
export function mutantsOf(path: string, text: string, name?: string): readonly Mutant[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const keeper = name === undefined ? source : keeperNode(source, name);
  const mutants: Mutant[] = [];
  const plant = (node: ts.Node, after: string) => {
    const [start, end] = [node.getStart(source), node.getEnd()];
    mutants.push({
      text: text.slice(0, start) + after + text.slice(end),
      line: source.getLineAndCharacterOfPosition(start).line + 1,
      ...{ before: text.slice(start, end), after },
    });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isBinaryExpression(node)) {
      const { operatorToken } = node;
      const after = COUNTERPARTS[operatorToken.getText(source)];
      if (after !== undefined) plant(operatorToken, after);
    } else if (isNegation(node)) plant(node, node.operand.getText(source));
    else if (node.kind === ts.SyntaxKind.TrueKeyword && isValue(node)) plant(node, "false");
    else if (node.kind === ts.SyntaxKind.FalseKeyword && isValue(node)) plant(node, "true");
    else if (ts.isPropertyAccessExpression(node)) {
      const after = COUNTERPARTS[node.getText(source)];
      if (after !== undefined) plant(node, after);
    } else if (ts.isExpressionStatement(node) && isCall(node.expression)) {
      plant(node, ";");
      if (ts.isAwaitExpression(node.expression)) {
        plant(node, `${node.expression.expression.getText(source)};`);
      }
    }
    const condition = conditionOf(node);
    if (condition !== undefined && !ts.isBinaryExpression(condition) && !isNegation(condition)) {
      plant(condition, `!(${condition.getText(source)})`);
    }
    ts.forEachChild(node, visit);
  };
  if (keeper !== undefined) visit(keeper);
  return mutants;
}

/** The others of its kind have an operator, which is turned. */
function conditionOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isIfStatement(node)) return node.expression;
  return ts.isConditionalExpression(node) ? node.condition : undefined;
}

function isNegation(node: ts.Node): node is ts.PrefixUnaryExpression {
  return ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken;
}

/** False within a type. */
function isValue(node: ts.Node): boolean {
  return !ts.isLiteralTypeNode(node.parent);
}

function isCall(node: ts.Expression): boolean {
  return ts.isCallExpression(ts.isAwaitExpression(node) ? node.expression : node);
}
