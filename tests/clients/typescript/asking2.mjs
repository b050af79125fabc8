// The client of the 2.x packages is asked: node asking2.mjs default|pin PROJECT (URL | COMMAND [ARGUMENT...])

import { Client } from "@modelcontextprotocol/client";
import { CAPABILITIES, HANDLERS, run } from "./asking.mjs";
import { transportTo } from "./transport2.mjs";

const [mode, root, ...server] = process.argv.slice(2);
const client = new Client(
  { name: "client-tests", version: "1" },
  {
    capabilities: CAPABILITIES,
    ...(mode === "pin" && { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
  },
);
for (const [method, handler] of Object.entries(HANDLERS)) client.setRequestHandler(method, handler);
await client.connect(transportTo(root, server));
await run(client, { revision: client.getNegotiatedProtocolVersion() });
