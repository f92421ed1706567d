/** The language server of this window: started, restarted, stopped, and what it says about itself. */

import * as childProcess from "node:child_process";
import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  DidChangeConfigurationNotification,
  ErrorAction,
  type ErrorHandler,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";

import { type Command, CommandNotFound } from "./command";
import { documentSelector } from "./documents";
import { Tail, versionProblem, whyEnded } from "./failure";
import { currentSettings, locateCommand, workspaceFolders } from "./located";
import { withoutLinks } from "./messages";
import type { Send } from "./requests";
import { SECTION, type Settings, forServer, needsRestart } from "./settings";
import { Findings, type State } from "./status";

const MOST_RESTARTS = 4;
const INSTALLATION = "https://github.com/ldlm-lint/ldlm-lint/blob/main/editors/vscode/README.md#install";

/** A process that was started, and why it ended once it has. */
interface Started {
  process: childProcess.ChildProcess;
  tail: Tail;
  problem: Promise<string>;
}

export class Session implements vscode.Disposable {
  readonly findings = new Findings();
  private readonly changes = new vscode.EventEmitter<void>();
  /** Fires when the state or the number of findings has changed. */
  readonly onChange = this.changes.event;
  private client: LanguageClient | undefined;
  private settings: Settings = currentSettings();
  private command: Command | undefined;
  private current: State = { kind: "stopped" };
  private queue: Promise<void> = Promise.resolve();

  constructor(private readonly output: vscode.LogOutputChannel, private readonly middleware: Middleware) {}

  get state(): State {
    return this.current;
  }

  /** Sends a request to the server, undefined while none runs. */
  get send(): Send | undefined {
    const client = this.client;
    return client === undefined || this.current.kind !== "ready" ? undefined : (method, params) => client.sendRequest(method, params);
  }

  /** The client, for its conversions between the types of the protocol and those of VS Code. */
  get converter(): LanguageClient["protocol2CodeConverter"] | undefined {
    return this.client?.protocol2CodeConverter;
  }

  /** Stops the server, if one runs, and starts it unless the settings say no. Calls are done one after the other. */
  restart(): Promise<void> {
    this.queue = this.queue.then(async () => {
      await this.stopNow();
      this.settings = currentSettings();
      if (this.settings.enable) {
        await this.startNow();
      }
    });
    return this.queue;
  }

  stop(): Promise<void> {
    this.queue = this.queue.then(() => this.stopNow());
    return this.queue;
  }

  /** Takes settings that were changed: the server is told of them, or started again if it has to be. */
  async configure(): Promise<void> {
    const [before, after] = [this.settings, currentSettings()];
    if (needsRestart(before, after)) {
      await this.restart();
      return;
    }
    this.settings = after;
    await this.client?.sendNotification(DidChangeConfigurationNotification.type, { settings: { "ldlm-lint": forServer(after) } });
  }

  /** Takes another Python environment: the server is started again if its command is another one there. */
  async relocate(): Promise<void> {
    const found = await this.locate().catch((error: unknown) => {
      this.output.info(error instanceof Error ? error.message : String(error));
      return undefined;
    });
    if (found?.path !== this.command?.path) {
      await this.restart();
    }
  }

  dispose(): void {
    void this.stop();
    this.changes.dispose();
  }

  private locate(): Promise<Command> {
    return locateCommand(this.settings.path, (text) => this.output.warn(text));
  }

  private become(state: State): void {
    this.current = state;
    this.changes.fire();
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.command = undefined;
    this.findings.clear();
    this.become({ kind: "stopped" });
    await client?.dispose();
  }

  private async startNow(): Promise<void> {
    this.become({ kind: "starting" });
    try {
      const command = await this.locate();
      this.command = command;
      this.output.info(`Starting ${command.path} server (from ${command.origin})`);
      await this.connect(command);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.output.error(reason);
      this.become({ kind: "failed", reason });
      // A command that is missing or wrong needs the user; nothing else goes on until then.
      void this.advise(reason, error instanceof CommandNotFound);
    }
  }

  private async advise(reason: string, isMissing: boolean): Promise<void> {
    const [guide, settings, again, output] = ["How to install", "Open settings", "Try again", "Show output"] as const;
    const choice = await vscode.window.showErrorMessage(withoutLinks(reason), guide, isMissing ? settings : output, again);
    if (choice === guide) {
      await vscode.env.openExternal(vscode.Uri.parse(INSTALLATION));
    } else if (choice === settings) {
      // The path of a command belongs to the machine that the window is connected to.
      const page = vscode.env.remoteName === undefined ? "openSettings" : "openRemoteSettings";
      await vscode.commands.executeCommand(`workbench.action.${page}`, { query: `${SECTION}.path` });
    } else if (choice === again) {
      await this.restart();
    } else if (choice === output) {
      this.output.show();
    }
  }

  private async connect(command: Command): Promise<void> {
    const started: Started[] = [];
    const client = new LanguageClient(SECTION, "ldlm-lint", () => {
      const last = start(command);
      started.push(last);
      return Promise.resolve(last.process);
    }, this.options());
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.client = undefined;
      const last = started.at(-1);
      throw new Error(last === undefined ? String(error) : await last.problem);
    }
    const version = client.initializeResult?.serverInfo?.version;
    const problem = versionProblem(version);
    if (problem !== undefined) {
      this.client = undefined;
      await client.dispose();
      throw new Error(problem);
    }
    this.become({ kind: "ready", version: version ?? "", origin: command.origin });
  }

  private options(): LanguageClientOptions {
    const { middleware } = this;
    return {
      documentSelector: documentSelector(),
      initializationOptions: forServer(this.settings),
      initializationFailedHandler: () => false,
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      diagnosticCollectionName: "ldlm-lint",
      errorHandler: this.errorHandler(),
      middleware: {
        ...middleware,
        handleDiagnostics: (uri, diagnostics, next) => {
          next(uri, diagnostics);
          this.findings.take(uri.toString(), diagnostics.length);
          this.changes.fire();
        },
      },
    };
  }

  /** Starts a server that dies while it runs anew, a few times. One that never answered is reported by `connect`. */
  private errorHandler(): ErrorHandler {
    let restarts = 0;
    return {
      error: (error) => {
        this.output.error(error);
        return { action: ErrorAction.Continue, handled: true };
      },
      closed: (): CloseHandlerResult => {
        if (this.current.kind !== "ready") {
          return { action: CloseAction.DoNotRestart, handled: true };
        }
        this.findings.clear();
        restarts += 1;
        if (restarts <= MOST_RESTARTS) {
          this.changes.fire();
          return { action: CloseAction.Restart, handled: true, message: "The server has ended; it is started again." };
        }
        const reason = `The server has ended ${restarts} times. The command "ldlm-lint: Restart server" starts it again.`;
        this.become({ kind: "failed", reason });
        void vscode.window.showErrorMessage(reason, "Show output").then((choice) => {
          if (choice !== undefined) {
            this.output.show();
          }
        });
        return { action: CloseAction.DoNotRestart, handled: true, message: reason };
      },
    };
  }
}

function start(command: Command): Started {
  const process = childProcess.spawn(command.path, ["server"], { cwd: workspaceFolders()[0], stdio: "pipe" });
  const tail = new Tail();
  process.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    tail.add(chunk);
  });
  const problem = new Promise<string>((resolve) => {
    process.on("error", (error) => {
      resolve(`${command.path} cannot be started: ${error.message}`);
    });
    process.on("close", (code, signal) => {
      resolve(whyEnded({ code, signal, stderr: tail.text }));
    });
  });
  return { process, tail, problem };
}
