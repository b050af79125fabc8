// How the client of the 1.x package reaches a server: the command that starts one, or the URL of one that is there.

import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

export function transportTo(root, [command, ...args]) {
  if (command.startsWith("http://")) {
    const transport = new StreamableHTTPClientTransport(new URL(command));
    return { transport, revision: () => transport.protocolVersion };
  }
  const env = { ...getDefaultEnvironment(), PYTHONPATH: process.env.PYTHONPATH };
  const transport = new StdioClientTransport({ command, args, env, cwd: root, stderr: "inherit" });
  // The client tells the revision only to transports that ask for it.
  let revision = null;
  transport.setProtocolVersion = (agreed) => (revision = agreed);
  return { transport, revision: () => revision };
}
