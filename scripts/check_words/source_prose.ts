import ts from "typescript";
import { proseOfString } from "./prose_string.ts";
import type { Prose } from "./wording.ts";

/** The comments that stand behind code on its line. */
export function trailingCommentsOf(source: string, path = "a.ts"): readonly Prose[] {
  const file = parse(source, path);
  const found = new Map<number, Prose>();
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of ts.getTrailingCommentRanges(source, node.end) ?? []) {
      // A comment in the first place of its line has been read with the other lines.
      if (source.slice(source.lastIndexOf("\n", pos) + 1, pos).trim() === "") continue;
      const text = source.slice(pos, end).replace(/^\/\/|^\/\*\*?|\*\/$/g, "");
      found.set(pos, { line: lineAt(file, pos), text: text.replace(/\s+/g, " ").trim() });
    }
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  return [...found.values()].sort((one, other) => one.line - other.line);
}

/** The strings that hold prose, such as messages, hints and usage, with "Code" for values. */
export function stringsOf(source: string, path = "a.ts"): readonly Prose[] {
  const file = parse(source, path);
  const found: Prose[] = [];
  const visit = (node: ts.Node): void => {
    if (!isText(node)) return void ts.forEachChild(node, visit);
    found.push(...proseOfString(textOf(node), lineAt(file, node.getStart(file))));
    valuesIn(node).forEach(visit);
  };
  visit(file);
  return found;
}

/** True for a string, a template, and for strings joined by `+`. */
function isText(node: ts.Node): node is ts.Expression {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  return isJoin(node) && (isText(node.left) || isText(node.right));
}

function isJoin(node: ts.Node): node is ts.BinaryExpression {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
}

function textOf(node: ts.Expression): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (isJoin(node)) return textOf(node.left) + textOf(node.right);
  if (!ts.isTemplateExpression(node)) return "Code";
  return node.head.text + node.templateSpans.map((span) => `Code${span.literal.text}`).join("");
}

/** The expressions whose values a text holds. */
function valuesIn(node: ts.Expression): readonly ts.Expression[] {
  if (ts.isStringLiteralLike(node)) return [];
  if (isJoin(node)) return [...valuesIn(node.left), ...valuesIn(node.right)];
  if (!ts.isTemplateExpression(node)) return [node];
  return node.templateSpans.map((span) => span.expression);
}

function parse(source: string, path: string): ts.SourceFile {
  return ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
}

function lineAt(file: ts.SourceFile, at: number): number {
  return file.getLineAndCharacterOfPosition(at).line + 1;
}
