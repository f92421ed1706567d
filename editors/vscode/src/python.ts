/** The interpreter that is selected in Microsoft's Python extension, if that is installed. */

import type { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

async function environments(): Promise<PythonExtension["environments"] | undefined> {
  const extension = vscode.extensions.getExtension<Partial<PythonExtension>>("ms-python.python");
  return (await extension?.activate())?.environments;
}

/** The path of the interpreter selected for a folder. */
export async function selectedInterpreter(folder: vscode.Uri | undefined): Promise<string | undefined> {
  const api = await environments();
  const environment = await api?.resolveEnvironment(api.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}

/** Calls `changed` each time another interpreter is selected. */
export async function onInterpreterChange(changed: () => void): Promise<vscode.Disposable> {
  const api = await environments();
  return api?.onDidChangeActiveEnvironmentPath(changed) ?? new vscode.Disposable(() => undefined);
}
