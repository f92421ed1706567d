/** What the extension adds to the answers of the server: "Explain rule" among the quick fixes and on hover. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

import { rulesInHover, rulesOf } from "./rules";

export const EXPLAIN = "ldlmLint.explainRule";

export const middleware: Middleware = {
  async provideCodeActions(document, range, context, token, next) {
    const actions = (await next(document, range, context, token)) ?? [];
    const wanted = context.only === undefined || context.only.contains(vscode.CodeActionKind.QuickFix);
    return wanted ? [...actions, ...rulesOf(context.diagnostics).map((rule) => explainAction(rule, context.diagnostics))] : actions;
  },

  async provideHover(document, position, token, next) {
    const hover = await next(document, position, token);
    if (!hover) {
      return hover;
    }
    const texts = hover.contents.filter((content) => content instanceof vscode.MarkdownString).map((content) => content.value);
    const rules = texts.flatMap(rulesInHover);
    return rules.length === 0 ? hover : new vscode.Hover([explainLinks(rules), ...hover.contents], hover.range);
  },
};

function explainAction(rule: string, diagnostics: readonly vscode.Diagnostic[]): vscode.CodeAction {
  const action = new vscode.CodeAction(`Explain ${rule}`, vscode.CodeActionKind.QuickFix);
  action.diagnostics = diagnostics.filter((diagnostic) => rulesOf([diagnostic]).includes(rule));
  action.command = { title: action.title, command: EXPLAIN, arguments: [rule] };
  return action;
}

/** Links that run the command. The server's own text is never allowed to run one: it quotes code of the repository. */
function explainLinks(rules: readonly string[]): vscode.MarkdownString {
  const links = rules.map((rule) => `[Explain ${rule}](command:${EXPLAIN}?${encodeURIComponent(JSON.stringify([rule]))})`);
  const text = new vscode.MarkdownString(links.join(" · "));
  text.isTrusted = { enabledCommands: [EXPLAIN] };
  return text;
}
