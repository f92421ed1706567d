/** Where the command is looked for in this window. */

import * as fs from "node:fs";
import * as os from "node:os";
import * as vscode from "vscode";

import { type Command, findCommand } from "./command";
import { selectedInterpreter } from "./python";
import { SECTION, type Settings, readSettings } from "./settings";

export function currentSettings(): Settings {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  return readSettings((name) => configuration.get(name));
}

export function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file").map((folder) => folder.uri.fsPath);
}

/** The command to start in this window. Raises CommandNotFound. `log` takes what is wrong with the Python extension. */
export async function locateCommand(setting: string, log: (text: string) => void): Promise<Command> {
  return findCommand({
    setting,
    trusted: vscode.workspace.isTrusted,
    folders: workspaceFolders(),
    interpreter: setting === "" && vscode.workspace.isTrusted ? await interpreter(log) : undefined,
    searchPath: process.env["PATH"] ?? "",
    home: os.homedir(),
    platform: process.platform,
    isExecutable,
  });
}

/** The selected interpreter. That another extension fails is no reason not to look in PATH. */
async function interpreter(log: (text: string) => void): Promise<string | undefined> {
  try {
    return await selectedInterpreter(vscode.workspace.workspaceFolders?.[0]?.uri);
  } catch (error) {
    log(`The Python extension does not report its environment: ${String(error)}`);
    return undefined;
  }
}

function isExecutable(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return fs.statSync(path).isFile();
  } catch {
    // It does not exist or is not ours to start.
    return false;
  }
}
