// The client of the 1.x package: node client1.mjs default PROJECT (URL | COMMAND [ARGUMENT...])

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { run } from "./scenario.mjs";
import { transportTo } from "./transport1.mjs";

const [, root, ...server] = process.argv.slice(2);

async function open(events) {
  const client = new Client(
    { name: "client-tests", version: "1" },
    {
      capabilities: { roots: { listChanged: true } },
      listChanged: {
        tools: { onChanged: (error, tools) => (error ? events.errors.push(String(error)) : events.onTools(tools)) },
      },
    },
  );
  client.onerror = (error) => events.errors.push(String(error));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    events.logs.push(params);
    events.onLog(params);
  });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void events.updates.push(params.uri));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: events.roots }));
  const { transport, revision } = transportTo(root, server);
  await client.connect(transport);
  return {
    client,
    transport,
    agreement: () => ({ era: "legacy", revision: revision() }),
    callOptions: (options) => [undefined, options],
    setLevel: async (level) => void (await client.setLoggingLevel(level)),
    subscribe: async (uris) => {
      for (const uri of uris) await client.subscribeResource({ uri });
      return () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri })));
    },
  };
}

await run(open, root);
