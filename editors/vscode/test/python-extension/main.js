const vscode = require("vscode");

exports.activate = () => {
  const changes = new vscode.EventEmitter();
  vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("python.selectedForTests") && changes.fire({}));
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: "selected", path: vscode.workspace.getConfiguration("python").get("selectedForTests") }),
      resolveEnvironment: async ({ path }) => (path === "" ? undefined : { executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changes.event,
    },
  };
};
