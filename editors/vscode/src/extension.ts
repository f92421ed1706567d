/** Where VS Code starts and stops the extension. */

import * as vscode from "vscode";

import { chosenRule, RulePanel } from "./explain";
import { currentSettings } from "./located";
import { withoutLinks } from "./messages";
import { EXPLAIN, middleware } from "./middleware";
import { onInterpreterChange } from "./python";
import { showReport } from "./report";
import { safeFixes, type Send } from "./requests";
import { Session } from "./session";
import { SECTION } from "./settings";
import { shown } from "./status";

let session: Session | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel("ldlm-lint", { log: true });
  session = new Session(output, middleware);
  context.subscriptions.push(output, session, statusBar(session), ...commands(session, output, context), ...listeners(session));
  void session.restart();
  onInterpreterChange(() => void session?.relocate()).then(
    (listener) => context.subscriptions.push(listener),
    (error: unknown) => output.warn(`Changes of the Python environment are not noticed: ${String(error)}`),
  );
}

export function deactivate(): Promise<void> | undefined {
  return session?.stop();
}

function listeners(running: Session): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) {
        void running.configure();
      }
    }),
    // A trusted workspace may name its own command, and its environment may hold it.
    vscode.workspace.onDidGrantWorkspaceTrust(() => void running.restart()),
  ];
}

function statusBar(running: Session): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("ldlmLint.status", vscode.StatusBarAlignment.Right);
  item.name = "ldlm-lint";
  item.command = "ldlmLint.showOutput";
  const update = (): void => {
    const { text, tooltip, background } = shown(running.state, running.findings);
    item.text = text;
    item.tooltip = tooltip;
    item.backgroundColor = background === "error" ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    if (currentSettings().enable) {
      item.show();
    } else {
      item.hide();
    }
  };
  update();
  return vscode.Disposable.from(item, running.onChange(update));
}

function commands(running: Session, output: vscode.LogOutputChannel, context: vscode.ExtensionContext): vscode.Disposable[] {
  const panel = new RulePanel();
  const register = (name: string, run: (...given: unknown[]) => Promise<void>): vscode.Disposable =>
    vscode.commands.registerCommand(name, async (...given: unknown[]) => {
      try {
        await run(...given);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        output.error(`${name}: ${message}`);
        void vscode.window.showErrorMessage(withoutLinks(message));
      }
    });
  return [
    panel,
    register(EXPLAIN, async (name) => {
      const send = required(running.send);
      const rule = typeof name === "string" ? name : await chosenRule(send);
      if (rule !== undefined) {
        await panel.show(send, rule);
      }
    }),
    register("ldlmLint.fixAll", () => fixAll(running)),
    register("ldlmLint.restart", () => running.restart()),
    register("ldlmLint.showOutput", async () => output.show()),
    register("ldlmLint.showReport", () => showReport(currentSettings().path, context.storageUri ?? context.globalStorageUri, output)),
  ];
}

function required(send: Send | undefined): Send {
  if (send === undefined) {
    throw new Error("The ldlm-lint server does not run. The output says why.");
  }
  return send;
}

async function fixAll(running: Session): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined) {
    throw new Error("No file is open.");
  }
  const fixes = await safeFixes(required(running.send), document.uri.toString());
  const edit = await running.converter?.asWorkspaceEdit(fixes);
  if (edit === undefined) {
    void vscode.window.showInformationMessage("ldlm-lint has no safe fix for this file.");
  } else if (!(await vscode.workspace.applyEdit(edit))) {
    throw new Error("VS Code did not apply the fixes: the file has changed in the meantime.");
  }
}
