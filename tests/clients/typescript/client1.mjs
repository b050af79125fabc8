// The client of the 1.x package: node client1.mjs default PROJECT COMMAND [ARGUMENT...]

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { run } from "./scenario.mjs";

const [, root, command, ...args] = process.argv.slice(2);

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
  const env = { ...getDefaultEnvironment(), PYTHONPATH: process.env.PYTHONPATH };
  const transport = new StdioClientTransport({ command, args, env, cwd: root, stderr: "inherit" });
  // The client tells the revision only to transports that ask for it.
  let revision = null;
  transport.setProtocolVersion = (agreed) => (revision = agreed);
  await client.connect(transport);
  return {
    client,
    transport,
    agreement: () => ({ era: "legacy", revision }),
    callOptions: (options) => [undefined, options],
    setLevel: async (level) => void (await client.setLoggingLevel(level)),
    subscribe: async (uris) => {
      for (const uri of uris) await client.subscribeResource({ uri });
      return () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri })));
    },
  };
}

await run(open, root);
