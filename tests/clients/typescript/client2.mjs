// The client of the 2.x packages: node client2.mjs default|auto|pin PROJECT (URL | COMMAND [ARGUMENT...])

import { Client } from "@modelcontextprotocol/client";
import { run } from "./scenario.mjs";
import { transportTo } from "./transport2.mjs";

const [mode, root, ...server] = process.argv.slice(2);
const NEGOTIATION = { default: {}, auto: { mode: "auto" }, pin: { mode: { pin: "2026-07-28" } } };
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

async function open(events) {
  const client = new Client(
    { name: "client-tests", version: "1" },
    {
      ...(mode !== "default" && { versionNegotiation: NEGOTIATION[mode] }),
      capabilities: { roots: { listChanged: true } },
      listChanged: {
        tools: { onChanged: (error, tools) => (error ? events.errors.push(String(error)) : events.onTools(tools)) },
      },
    },
  );
  client.onerror = (error) => events.errors.push(String(error));
  client.setNotificationHandler("notifications/message", ({ params }) => {
    events.logs.push(params);
    events.onLog(params);
  });
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void events.updates.push(params.uri));
  client.setRequestHandler("roots/list", () => ({ roots: events.roots }));
  const transport = transportTo(root, server);
  await client.connect(transport);
  const isModern = client.getProtocolEra() === "modern";
  return {
    client,
    transport,
    agreement: () => ({ era: client.getProtocolEra(), revision: client.getNegotiatedProtocolVersion() }),
    callOptions: (options) => [options],
    subscribe: async (uris) => {
      if (isModern) {
        const subscription = await client.listen({ resourceSubscriptions: uris });
        return () => subscription.close();
      }
      for (const uri of uris) await client.subscribeResource({ uri });
      return () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri })));
    },
    // A stateless client asks with each request.
    setLevel: async (level) => (isModern ? { [LOG_LEVEL]: level } : void (await client.setLoggingLevel(level))),
  };
}

await run(open, root);
