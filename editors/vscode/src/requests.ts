/** What the extension asks the server itself, apart from what VS Code asks. */

import type { CodeAction, WorkspaceEdit } from "vscode-languageserver-protocol";

/** Sends a request of the language server protocol and returns the answer. */
export type Send = (method: string, params: unknown) => Promise<unknown>;

export const FIX_ALL = "source.fixAll.ldlm-lint";

export interface RuleSummary {
  name: string;
  code: string;
  consequence: string;
  summary: string;
}

export interface RulePage {
  name: string;
  code: string;
  url: string;
  markdown: string;
}

export async function allRules(send: Send): Promise<RuleSummary[]> {
  return (await send("ldlm-lint/rules", null)) as RuleSummary[];
}

/** The page of a rule. Raises Error for a name that no rule has. */
export async function pageOf(send: Send, name: string): Promise<RulePage> {
  const answer = (await send("ldlm-lint/rule", { name })) as RulePage | { problem: string };
  if ("problem" in answer) {
    throw new Error(answer.problem);
  }
  return answer;
}

/** The edit that applies all safe fixes of a document; undefined if there is none. */
export async function safeFixes(send: Send, uri: string): Promise<WorkspaceEdit | undefined> {
  const start = { line: 0, character: 0 };
  const params = { textDocument: { uri }, range: { start, end: start }, context: { diagnostics: [], only: [FIX_ALL] } };
  const [action] = ((await send("textDocument/codeAction", params)) ?? []) as CodeAction[];
  if (action === undefined) {
    return undefined;
  }
  const resolved = action.edit !== undefined ? action : ((await send("codeAction/resolve", action)) as CodeAction);
  return resolved.edit;
}
