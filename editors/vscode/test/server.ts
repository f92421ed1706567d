/** The real server as a test's editor talks to it: `ldlm-lint server` over stdin and stdout. */

import * as childProcess from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { pathToFileURL } from "node:url";

import { createMessageConnection, type MessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";
import type { CodeAction, Diagnostic, Hover, InitializeResult, Range, TextEdit, WorkspaceEdit } from "vscode-languageserver-protocol";

import type { Send } from "../src/requests";
import type { ServerSettings } from "../src/settings";

const TIMEOUT_MS = 60_000;

/** The command under test: LDLM_LINT if it is set, else the one in PATH. */
export const COMMAND = process.env["LDLM_LINT"] ?? "ldlm-lint";

interface Published {
  uri: string;
  version?: number;
  diagnostics: Diagnostic[];
}

export class Server {
  readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), "ldlm-lint-vscode-"));
  readonly published: Published[] = [];
  readonly messages: string[] = [];
  readonly process = childProcess.spawn(COMMAND, ["server"], { cwd: this.folder, stdio: ["pipe", "pipe", "inherit"] });
  readonly connection: MessageConnection = createMessageConnection(new StreamMessageReader(this.process.stdout), new StreamMessageWriter(this.process.stdin));
  readonly send: Send = (method, params) => this.connection.sendRequest(method, params);
  private readonly texts = new Map<string, { version: number; text: string }>();
  private news = (): void => undefined;

  constructor() {
    this.connection.onNotification("textDocument/publishDiagnostics", (params: Published) => {
      this.published.push(params);
      this.news();
    });
    this.connection.onNotification("window/showMessage", (params: { message: string }) => {
      this.messages.push(params.message);
      this.news();
    });
    this.connection.onRequest("client/registerCapability", () => null);
    this.connection.listen();
  }

  /** Greets the server as VS Code does, as far as it matters to ours. */
  async initialize(settings: ServerSettings): Promise<InitializeResult> {
    const result = await this.connection.sendRequest<InitializeResult>("initialize", {
      processId: process.pid,
      rootUri: this.uri(""),
      capabilities: {
        general: { positionEncodings: ["utf-16"] },
        notebookDocument: { synchronization: { dynamicRegistration: false } },
        workspace: { workspaceEdit: { documentChanges: true, changeAnnotationSupport: {} } },
        textDocument: {
          publishDiagnostics: { relatedInformation: true },
          hover: { contentFormat: ["markdown"] },
          codeAction: { disabledSupport: true, resolveSupport: { properties: ["edit"] } },
        },
      },
      initializationOptions: settings,
    });
    await this.connection.sendNotification("initialized", {});
    return result;
  }

  uri(name: string): string {
    return pathToFileURL(path.join(this.folder, name)).href;
  }

  async open(name: string, text: string): Promise<void> {
    fs.writeFileSync(path.join(this.folder, name), text);
    this.texts.set(this.uri(name), { version: 1, text });
    await this.connection.sendNotification("textDocument/didOpen", { textDocument: { uri: this.uri(name), languageId: "python", version: 1, text } });
  }

  async type(name: string, text: string): Promise<void> {
    const version = this.version(name) + 1;
    this.texts.set(this.uri(name), { version, text });
    await this.connection.sendNotification("textDocument/didChange", { textDocument: { uri: this.uri(name), version }, contentChanges: [{ text }] });
  }

  async save(name: string): Promise<void> {
    fs.writeFileSync(path.join(this.folder, name), this.text(name));
    await this.connection.sendNotification("textDocument/didSave", { textDocument: { uri: this.uri(name) } });
  }

  async configure(settings: ServerSettings): Promise<void> {
    await this.connection.sendNotification("workspace/didChangeConfiguration", { settings: { "ldlm-lint": settings } });
  }

  text(name: string): string {
    return this.texts.get(this.uri(name))?.text ?? "";
  }

  version(name: string): number {
    return this.texts.get(this.uri(name))?.version ?? 0;
  }

  /** The rules of the findings that the server publishes for the text as it is, once `fits` accepts them. */
  async rules(name: string, fits: (rules: string[]) => boolean = () => true): Promise<string[]> {
    return this.until(() => {
      const last = this.published.filter((message) => message.uri === this.uri(name)).at(-1);
      const rules = last?.diagnostics.map((diagnostic) => String(diagnostic.code)) ?? [];
      return last?.version === this.version(name) && fits(rules) ? rules : undefined;
    });
  }

  diagnostics(name: string): Diagnostic[] {
    return this.published.filter((message) => message.uri === this.uri(name)).at(-1)?.diagnostics ?? [];
  }

  actions(name: string, range: Range): Promise<CodeAction[]> {
    return this.connection.sendRequest("textDocument/codeAction", { textDocument: { uri: this.uri(name) }, range, context: { diagnostics: [] } });
  }

  async hover(name: string, range: Range): Promise<string> {
    const hover = await this.connection.sendRequest<Hover | null>("textDocument/hover", { textDocument: { uri: this.uri(name) }, position: range.start });
    return hover === null ? "" : (hover.contents as { value: string }).value;
  }

  /** Applies an edit to a buffer as an editor does. */
  async apply(name: string, edit: WorkspaceEdit): Promise<void> {
    const edits = (edit.documentChanges ?? []).flatMap((change) => ("edits" in change && change.textDocument.uri === this.uri(name) ? (change.edits as TextEdit[]) : []));
    await this.type(name, applied(this.text(name), edits));
  }

  /** Says goodbye; the exit code. */
  async leave(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.process.on("exit", resolve));
    await this.connection.sendRequest("shutdown");
    await this.connection.sendNotification("exit");
    const code = await ended;
    this.connection.dispose();
    fs.rmSync(this.folder, { recursive: true });
    return code;
  }

  /** Waits for messages of the server until `found` has a result. */
  async until<T>(found: () => T | undefined): Promise<T> {
    const deadline = Date.now() + TIMEOUT_MS;
    for (;;) {
      const result = found();
      if (result !== undefined) {
        return result;
      }
      await this.nextNews(deadline - Date.now());
    }
  }

  private nextNews(milliseconds: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing fitting came from the server: ${JSON.stringify(this.published.at(-1))}`)), milliseconds);
      this.news = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A text after edits whose ranges are all about the text before. */
function applied(text: string, edits: readonly TextEdit[]): string {
  const lines = text.split("\n");
  const offset = (line: number, character: number): number => lines.slice(0, line).reduce((sum, before) => sum + before.length + 1, 0) + character;
  const spans = edits.map((edit) => ({
    start: offset(edit.range.start.line, edit.range.start.character),
    end: offset(edit.range.end.line, edit.range.end.character),
    text: edit.newText,
  }));
  return spans.sort((left, right) => right.start - left.start).reduce((made, span) => made.slice(0, span.start) + span.text + made.slice(span.end), text);
}
