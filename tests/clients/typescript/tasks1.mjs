// Tasks with the client of the 1.x package: node tasks1.mjs default PROJECT (URL | COMMAND [ARGUMENT...])

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { transportTo } from "./transport1.mjs";

const [, root, ...server] = process.argv.slice(2);
const capabilities = { elicitation: { form: {} }, tasks: { requests: { elicitation: { create: {} } } } };
const client = new Client({ name: "client-tests", version: "1" }, { capabilities });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
  action: "accept",
  content: { [Object.keys(params.requestedSchema.properties)[0]]: "Zoe" },
}));
const { transport } = transportTo(root, server);
await client.connect(transport);
const tasks = client.experimental.tasks;
const { tools } = await client.listTools(); // the client learns here which tools may be tasks
const report = { support: Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport ?? null])) };

async function streamed(name, args) {
  const seen = [];
  for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: { ttl: 60000 } })) {
    seen.push(message.type === "result" ? message.result : message.type === "error" ? String(message.error) : message.task.status);
  }
  return seen;
}

report.slow = await streamed("slow", {});
report.asker = await streamed("asker", {});
const { task } = await client.request(
  { method: "tools/call", params: { name: "endless", arguments: {}, task: {} } },
  (await import("@modelcontextprotocol/sdk/experimental/tasks")).CreateTaskResultSchema ??
    (await import("@modelcontextprotocol/sdk/types.js")).CreateTaskResultSchema,
);
report.polled = (await tasks.getTask(task.taskId)).status;
report.cancelled = (await tasks.cancelTask(task.taskId)).status;
report.listed = (await tasks.listTasks()).tasks.length;
console.log(JSON.stringify(report));
await client.close();
