/** The command "Show HTML report": checks the workspace and opens the report in the browser. */

import * as childProcess from "node:child_process";
import * as vscode from "vscode";

import { whyEnded } from "./failure";
import { locateCommand } from "./located";

/** Exit codes of a check that was done: without and with findings. */
const DONE = [0, 1];

export async function showReport(setting: string, storage: vscode.Uri): Promise<void> {
  const folder = await chosenFolder();
  if (folder === undefined) {
    return;
  }
  await vscode.workspace.fs.createDirectory(storage);
  const report = vscode.Uri.joinPath(storage, "report.html");
  const command = await locateCommand(setting);
  const where = { location: vscode.ProgressLocation.Notification, title: `ldlm-lint checks ${folder.name}`, cancellable: true };
  const problem = await vscode.window.withProgress(where, (_progress, token) => {
    const arguments_ = ["--format", "html", "--output", report.fsPath, folder.uri.fsPath];
    return written(command.path, arguments_, folder.uri.fsPath, token);
  });
  if (problem !== undefined) {
    void vscode.window.showErrorMessage(problem);
  } else if (vscode.env.remoteName === undefined) {
    await vscode.env.openExternal(report);
  } else {
    // The browser runs on another machine than the file is on.
    void vscode.window.showInformationMessage(`The report is in ${report.fsPath}`);
  }
}

async function chosenFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    void vscode.window.showInformationMessage("Open a folder first: the report is about all of its files.");
  }
  return folders.length > 1 ? vscode.window.showWorkspaceFolderPick() : folders[0];
}

/** Runs a check; what went wrong, undefined if nothing did. */
function written(command: string, arguments_: string[], folder: string, token: vscode.CancellationToken): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = childProcess.execFile(command, arguments_, { cwd: folder }, (error, _stdout, stderr) => {
      if (token.isCancellationRequested) {
        resolve("The check was cancelled: there is no report.");
      } else if (child.exitCode !== null && DONE.includes(child.exitCode)) {
        resolve(undefined);
      } else {
        resolve(child.pid === undefined && error !== null ? error.message : whyEnded({ code: child.exitCode, signal: child.signalCode, stderr }));
      }
    });
    token.onCancellationRequested(() => child.kill());
  });
}
