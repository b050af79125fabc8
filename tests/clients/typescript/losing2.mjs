// The client of the 2.x packages loses connections: node losing2.mjs default|pin PROJECT URL

import { Client } from "@modelcontextprotocol/client";
import { run } from "./losing.mjs";
import { transportTo } from "./transport2.mjs";

const [mode, root, url] = process.argv.slice(2);

async function open(events, url) {
  const negotiation = mode === "pin" && { versionNegotiation: { mode: { pin: "2026-07-28" } } };
  const client = new Client({ name: "client-tests", version: "1" }, { capabilities: {}, ...negotiation });
  client.onerror = (error) => events.errors.push(String(error));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void events.updates.push(params.uri));
  client.setNotificationHandler("notifications/tools/list_changed", () => void (events.lists += 1));
  const transport = transportTo(root, [url]);
  await client.connect(transport);
  return { client, transport, isSession: mode === "default", callOptions: (options) => [options] };
}

await run(open, root, url);
