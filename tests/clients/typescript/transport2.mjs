// How the client of the 2.x packages reaches a server: the command that starts one, or the URL of one that is there.

import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";

export function transportTo(root, [command, ...args]) {
  if (command.startsWith("http://")) return new StreamableHTTPClientTransport(new URL(command));
  const env = { ...getDefaultEnvironment(), PYTHONPATH: process.env.PYTHONPATH };
  return new StdioClientTransport({ command, args, env, cwd: root, stderr: "inherit" });
}
