// The client of the 1.x package is asked: node asking1.mjs default PROJECT (URL | COMMAND [ARGUMENT...])

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { CAPABILITIES, HANDLERS, run } from "./asking.mjs";
import { transportTo } from "./transport1.mjs";

const [, root, ...server] = process.argv.slice(2);
const client = new Client({ name: "client-tests", version: "1" }, { capabilities: CAPABILITIES });
client.setRequestHandler(ElicitRequestSchema, HANDLERS["elicitation/create"]);
client.setRequestHandler(CreateMessageRequestSchema, HANDLERS["sampling/createMessage"]);
client.setRequestHandler(ListRootsRequestSchema, HANDLERS["roots/list"]);
const { transport, revision } = transportTo(root, server);
await client.connect(transport);
await run(client, { revision: revision() });
