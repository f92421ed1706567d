/** The command "Explain rule": a page beside the code. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

import { allRules, pageOf, type Send } from "./requests";
import { rulePageHtml } from "./rulePage";
import { rulesOf } from "./rules";

/** One panel, whose page changes. */
export class RulePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  async show(send: Send, name: string): Promise<void> {
    const page = await pageOf(send, name);
    const panel = this.panel ?? this.create();
    panel.title = page.name;
    panel.webview.html = rulePageHtml(page, randomBytes(16).toString("hex"));
    panel.reveal(panel.viewColumn, true);
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private create(): vscode.WebviewPanel {
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: false, enableCommandUris: false, localResourceRoots: [], enableFindWidget: true };
    this.panel = vscode.window.createWebviewPanel("ldlmLint.rule", "ldlm-lint", place, options);
    this.panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return this.panel;
  }
}

/** The rule to explain: that of the finding under the cursor, else one that the user picks. */
export async function chosenRule(send: Send): Promise<string | undefined> {
  const here = rulesAtCursor();
  if (here.length === 1) {
    return here[0];
  }
  const rules = await allRules(send);
  const offered = here.length > 0 ? rules.filter((rule) => here.includes(rule.name)) : rules;
  const items = offered.map((rule) => ({ label: rule.name, description: `${rule.consequence} · ${rule.code}`, detail: plain(rule.summary) }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "The rule to explain", matchOnDescription: true, matchOnDetail: true });
  return picked?.label;
}

function rulesAtCursor(): string[] {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return [];
  }
  const { selection } = editor;
  return rulesOf(vscode.languages.getDiagnostics(editor.document.uri).filter((diagnostic) => diagnostic.range.intersection(selection) !== undefined));
}

/** Text for a list, which shows no Markdown. `$(` would become an icon there. */
function plain(text: string): string {
  return text.replaceAll("`", "").replaceAll("$(", "$ (");
}
