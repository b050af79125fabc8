// The client of the 1.x package is asked: node asking1.mjs default PROJECT COMMAND [ARGUMENT...]

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { CAPABILITIES, HANDLERS, run } from "./asking.mjs";

const [, root, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "client-tests", version: "1" }, { capabilities: CAPABILITIES });
client.setRequestHandler(ElicitRequestSchema, HANDLERS["elicitation/create"]);
client.setRequestHandler(CreateMessageRequestSchema, HANDLERS["sampling/createMessage"]);
client.setRequestHandler(ListRootsRequestSchema, HANDLERS["roots/list"]);
const env = { ...getDefaultEnvironment(), PYTHONPATH: process.env.PYTHONPATH };
const transport = new StdioClientTransport({ command, args, env, cwd: root, stderr: "inherit" });
let revision = null;
transport.setProtocolVersion = (agreed) => (revision = agreed);
await client.connect(transport);
await run(client, { revision });
