// The client of the 1.x package loses connections: node losing1.mjs default PROJECT URL

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { run } from "./losing.mjs";
import { transportTo } from "./transport1.mjs";

const [, root, url] = process.argv.slice(2);

async function open(events, url) {
  const client = new Client({ name: "client-tests", version: "1" }, { capabilities: {} });
  client.onerror = (error) => events.errors.push(String(error));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void events.updates.push(params.uri));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (events.lists += 1));
  const { transport } = transportTo(root, [url]);
  await client.connect(transport);
  return { client, transport, isSession: true, callOptions: (options) => [undefined, options] };
}

await run(open, root, url);
