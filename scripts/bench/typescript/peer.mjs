/* The official TypeScript SDK over Streamable HTTP, with tools that run the same scripts.
 *
 * Plain node:http, with the guards for Host and Origin that the SDK recommends there, and the low-level Server: with
 * McpServer each tool would be registered anew for every stateless request. Requests of the stateless era go to
 * createMcpHandler, which answers with JSON by itself; sessions have a transport each, which is told to.
 *
 * usage: node peer.mjs PROJECT
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

const STATELESS = "2026-07-28";
const project = process.argv[2];
const tools = readTools(join(project, "tools"));
const sessions = new Map();
const isGoodHost = localhostHostValidation();
const isGoodOrigin = localhostOriginValidation();
const stateless = toNodeHandler(createMcpHandler(newServer, { legacy: "reject" }));

function readTools(folder) {
  const names = readdirSync(folder).filter((entry) => entry.endsWith(".sh")).map((entry) => entry.slice(0, -3));
  return names.sort().map((name) => {
    const meta = join(folder, `${name}.meta.json`);
    return existsSync(meta) ? JSON.parse(readFileSync(meta, "utf8")) : { name, inputSchema: { type: "object" } };
  });
}

function runScript(name, signal) {
  return new Promise((resolve, reject) => {
    const script = join(project, "tools", `${name}.sh`);
    const child = spawn(script, { stdio: ["ignore", "pipe", "inherit"], detached: true, signal });
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.on("error", reject);
    child.on("close", () => resolve(Buffer.concat(output).toString("utf8")));
  });
}

function newServer() {
  const server = new Server({ name: "typescript-sdk", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", async (request, context) => ({
    content: [{ type: "text", text: await runScript(request.params.name, context.mcpReq.signal) }],
  }));
  return server;
}

async function newSession() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await newServer().connect(transport);
  return transport;
}

const listener = createServer(async (request, response) => {
  if (!isGoodHost(request, response) || !isGoodOrigin(request, response)) return;
  if (request.headers["mcp-protocol-version"] === STATELESS) {
    await stateless(request, response);
    return;
  }
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !sessions.has(id)) {
    response.writeHead(404).end();
    return;
  }
  await (sessions.get(id) ?? (await newSession())).handleRequest(request, response);
});
listener.listen(0, "127.0.0.1", () => {
  process.stderr.write(`serving http://127.0.0.1:${listener.address().port}/mcp\n`);
});
process.on("SIGTERM", () => process.exit(0));
