/** Finds the command `ldlm-lint`: the one of the settings, of the selected Python environment, or of PATH. */

import * as nodePath from "node:path";

export interface Surroundings {
  /** The setting `ldlmLint.path`. In a workspace that is not trusted VS Code gives only the user's own value. */
  setting: string;
  /** Whether the user trusts the workspace. Nothing inside one that is not trusted is ever started. */
  trusted: boolean;
  /** Absolute paths of the workspace folders. */
  folders: readonly string[];
  /** The interpreter that is selected in the Python extension, if it is installed. */
  interpreter: string | undefined;
  /** The environment variable PATH. */
  searchPath: string;
  home: string;
  platform: NodeJS.Platform;
  isExecutable(path: string): boolean;
}

export interface Command {
  path: string;
  origin: "the setting ldlmLint.path" | "the selected Python environment" | "PATH";
}

/** Why there is no command to start; the text says what to do. */
export class CommandNotFound extends Error {}

const NAME = "ldlm-lint";

/** The command to start, as an absolute path. Raises CommandNotFound. */
export function findCommand(here: Surroundings): Command {
  if (here.setting !== "") {
    return { path: fromSetting(here), origin: "the setting ldlmLint.path" };
  }
  const paths = pathsOf(here);
  if (here.trusted && here.interpreter !== undefined) {
    const beside = paths.join(paths.dirname(here.interpreter), executableName(NAME, here));
    if (here.isExecutable(beside)) {
      return { path: beside, origin: "the selected Python environment" };
    }
  }
  const found = searched(NAME, here);
  if (found === undefined) {
    throw new CommandNotFound(missing(here));
  }
  return { path: found, origin: "PATH" };
}

function fromSetting(here: Surroundings): string {
  const paths = pathsOf(here);
  const folder = here.folders[0] ?? "";
  const path = here.setting.replace(/^~(?=[\\/])/, () => here.home).replaceAll("${workspaceFolder}", () => folder);
  if (!path.includes("/") && !path.includes(paths.sep)) {
    const found = searched(path, here);
    if (found === undefined) {
      throw new CommandNotFound(`The setting ldlmLint.path names "${path}", which is not in PATH.`);
    }
    return found;
  }
  if (!paths.isAbsolute(path)) {
    throw new CommandNotFound(`The setting ldlmLint.path must be an absolute path or the name of a command, not "${path}".`);
  }
  if (isForbidden(path, here)) {
    throw new CommandNotFound(`The setting ldlmLint.path names a file in this workspace, which you do not trust: "${path}".`);
  }
  if (!here.isExecutable(path)) {
    throw new CommandNotFound(`The setting ldlmLint.path names "${path}", which is not a program.`);
  }
  return path;
}

/** The first program of this name in PATH. Relative entries of PATH are left out: the working directory decides what they mean. */
function searched(name: string, here: Surroundings): string | undefined {
  const paths = pathsOf(here);
  return here.searchPath
    .split(paths.delimiter)
    .filter((entry) => paths.isAbsolute(entry))
    .map((entry) => paths.join(entry, executableName(name, here)))
    .find((path) => !isForbidden(path, here) && here.isExecutable(path));
}

function isForbidden(path: string, here: Surroundings): boolean {
  const paths = pathsOf(here);
  return !here.trusted && here.folders.some((folder) => {
    const inside = paths.relative(folder, path);
    return !paths.isAbsolute(inside) && inside.split(paths.sep)[0] !== "..";
  });
}

function executableName(name: string, here: Surroundings): string {
  return here.platform === "win32" && !/\.exe$/i.test(name) ? `${name}.exe` : name;
}

function pathsOf(here: Surroundings): nodePath.PlatformPath {
  return here.platform === "win32" ? nodePath.win32 : nodePath.posix;
}

function missing(here: Surroundings): string {
  const where = here.interpreter !== undefined && here.trusted ? "neither in the selected Python environment nor in PATH" : "not in PATH";
  return `The command ldlm-lint is ${where}. Install it, or set its path in ldlmLint.path.`;
}
