/** The command "Show HTML report": checks a folder of the workspace and shows the report in a tab. */

import * as fs from "node:fs/promises";
import * as vscode from "vscode";

import { locateCommand } from "./located";
import { withoutLinks } from "./messages";
import { written } from "./written";

/** The report forbids itself everything but its own script and style. */
const POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;';
const BROWSER = "Open in the browser";

export async function showReport(setting: string, storage: vscode.Uri, output: vscode.LogOutputChannel): Promise<void> {
  const folder = await chosenFolder();
  if (folder === undefined) {
    return;
  }
  await vscode.workspace.fs.createDirectory(storage);
  const report = vscode.Uri.joinPath(storage, "report.html");
  const command = await locateCommand(setting, (text) => output.warn(text));
  const where = { location: vscode.ProgressLocation.Notification, title: withoutLinks(`ldlm-lint checks ${folder.name}`), cancellable: true };
  const problem = await vscode.window.withProgress(where, (_progress, token) => {
    const controller = new AbortController();
    token.onCancellationRequested(() => controller.abort());
    return written(command.path, folder.uri.fsPath, report.fsPath, controller.signal);
  });
  if (problem !== undefined) {
    throw new Error(problem);
  }
  await showTab(report, folder.name);
  await offerBrowser(report);
}

/** Shows the report in a tab, which works in windows that are connected to another machine too. */
async function showTab(report: vscode.Uri, name: string): Promise<void> {
  const html = await fs.readFile(report.fsPath, "utf-8");
  if (!html.includes(POLICY)) {
    throw new Error("The report has no content security policy, so it is not shown here.");
  }
  const options = { enableScripts: true, enableCommandUris: false, localResourceRoots: [], enableFindWidget: true };
  const panel = vscode.window.createWebviewPanel("ldlmLint.report", `ldlm-lint: ${name}`, vscode.ViewColumn.Active, options);
  panel.webview.html = html;
}

async function offerBrowser(report: vscode.Uri): Promise<void> {
  // The browser of a window that is connected to another machine cannot read the file.
  const choices = vscode.env.remoteName === undefined ? [BROWSER] : [];
  if ((await vscode.window.showInformationMessage(withoutLinks(`The report is in ${report.fsPath}`), ...choices)) !== undefined) {
    await vscode.env.openExternal(report);
  }
}

async function chosenFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    void vscode.window.showInformationMessage("Open a folder first: the report is about all of its files.");
  }
  return folders.length > 1 ? vscode.window.showWorkspaceFolderPick() : folders[0];
}
