// The skills of a server, each file verified by the client of the 2.x packages: node skills.mjs pin PROJECT SERVER...

import { Client } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { transportTo } from "./transport2.mjs";

const [, root, ...server] = process.argv.slice(2);
const info = { name: "client-tests", version: "1" };
const client = new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
await client.connect(transportTo(root, server));
const skills = new SkillsClient(client);
const found = {};
for (const skill of (await skills.list()).skills) {
  const { frontmatter } = await skills.read(skill);
  const files = [];
  for (const { uri } of skill.resources) files.push((await skills.read(skill, uri)).verified);
  const { resources } = await skills.readDirectory(skill.uri.replace(/\/SKILL\.md$/, ""));
  found[frontmatter.name] = { frontmatter, files, children: resources.map(({ name }) => name) };
}
console.log(JSON.stringify(found));
await client.close();
