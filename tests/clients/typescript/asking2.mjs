// The client of the 2.x packages is asked: node asking2.mjs default|pin PROJECT COMMAND [ARGUMENT...]

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";
import { CAPABILITIES, HANDLERS, run } from "./asking.mjs";

const [mode, root, command, ...args] = process.argv.slice(2);
const client = new Client(
  { name: "client-tests", version: "1" },
  {
    capabilities: CAPABILITIES,
    ...(mode === "pin" && { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
  },
);
for (const [method, handler] of Object.entries(HANDLERS)) client.setRequestHandler(method, handler);
const env = { ...getDefaultEnvironment(), PYTHONPATH: process.env.PYTHONPATH };
const transport = new StdioClientTransport({ command, args, env, cwd: root, stderr: "inherit" });
await client.connect(transport);
await run(client, { revision: client.getNegotiatedProtocolVersion() });
